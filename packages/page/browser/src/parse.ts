/** They turn around what stands beside them, on either side: a name with one changes the meaning of the whole line. */
const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** JSON, with what is not seen itself but changes what is seen as its code, such as `\u202e`. */
export function parse(json: string): unknown {
  return JSON.parse(json.replaceAll(DIRECTIONS, (unit) => `\\\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`));
}
