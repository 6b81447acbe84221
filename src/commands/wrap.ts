/** Terminals are at least as wide. */
export const WIDTH = 80;

/** Text in lines of at most {@link WIDTH} characters; a longer word has a line of its own. */
export function wrapped(text: string, indent: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && indent + line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].map((each) => ' '.repeat(indent) + each);
}
