// C0 but for tabs and line feeds, DEL and C1 (ECMA-48), the separators of lines, and what turns the direction of text (Unicode UAX #9).
export const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Text of several lines as it may be shown on a terminal: control characters as `\u001b`. Texts from outside could set colours, move the cursor or
 * have the terminal answer. JSON stays what it was.
 */
export function printableText(text: string): string {
  return text.replace(CONTROLS, escape);
}

/** One line of such text: line feeds are escaped as well, so that nothing can pass for a line of its own. */
export function printableLine(text: string): string {
  return printableText(text).replaceAll('\n', '\\u000a');
}

function escape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
