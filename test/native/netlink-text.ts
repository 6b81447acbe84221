/** Netlink messages as text, to compare batches: one line an attribute, indented by depth. Written apart from the addon's own reader. */

const HEADER = 20;
const ALIGN = 3;
const NESTED = 0x8000;
const TYPE = 0x3fff;
const NLM_F_ACK = 4;

export interface WireMessage {
  /** Message number of nf_tables; 0 for the batch's frame. */
  readonly type: number;
  /** nlmsg_flags without NLM_F_ACK, family. */
  readonly head: string;
  readonly lines: readonly string[];
}

function attributes(bytes: Buffer, depth: number, lines: string[]): void {
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt16LE(at);
    const type = bytes.readUInt16LE(at + 2);
    const body = bytes.subarray(at + 4, at + length);
    const start = `${'  '.repeat(depth)}${type & TYPE}`;
    if ((type & NESTED) === 0) lines.push(`${start} ${body.toString('hex')}`);
    else {
      lines.push(start);
      attributes(body, depth + 1, lines);
    }
    at += (length + ALIGN) & ~ALIGN;
  }
}

export function messages(batch: Uint8Array): readonly WireMessage[] {
  const bytes = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength);
  const found: WireMessage[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32LE(at);
    const type = bytes.readUInt16LE(at + 4);
    const lines: string[] = [];
    attributes(bytes.subarray(at + HEADER, at + length), 0, lines);
    const flags = bytes.readUInt16LE(at + 6) & ~NLM_F_ACK;
    if (type >> 8 === 10)
      found.push({ type: type & 0xff, head: `flags ${flags} family ${bytes[at + 16] ?? -1}`, lines });
    at += (length + ALIGN) & ~ALIGN;
  }
  return found;
}
