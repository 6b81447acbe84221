import { gunzipSync } from 'node:zlib';

/** What a test asks of a profile in pprof's format, taken apart by hand (google/pprof, proto/profile.proto). */
export interface DecodedProfile {
  /** `type/unit`. */
  readonly sampleTypes: readonly string[];
  readonly periodType: string;
  readonly period: number;
  readonly durationNanos: number;
  /** Names of functions, innermost first, and the first value. */
  readonly samples: readonly { readonly stack: readonly string[]; readonly value: number }[];
  readonly files: readonly string[];
}

type Fields = ReadonlyMap<number, readonly (number | Buffer)[]>;

function readFields(bytes: Buffer): Fields {
  const fields = new Map<number, (number | Buffer)[]>();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes.readUInt8(at++);
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const [field, type] = [tag >>> 3, tag & 7];
    if (type !== 0 && type !== 2) throw new Error(`wire type ${type}`);
    const number = varint();
    const value = type === 0 ? number : bytes.subarray(at, (at += number));
    fields.set(field, [...(fields.get(field) ?? []), value]);
  }
  return fields;
}

const messages = (fields: Fields, field: number): Fields[] =>
  (fields.get(field) ?? []).map((value) => readFields(Buffer.isBuffer(value) ? value : Buffer.alloc(0)));

/** Repeated numbers, packed or not. */
const numbers = (fields: Fields, field: number): number[] =>
  (fields.get(field) ?? []).flatMap((value) => {
    if (!Buffer.isBuffer(value)) return [value];
    const wrapped = Buffer.concat(
      [...value].flatMap((byte, index) => [...((value[index - 1] ?? 0) < 0x80 ? [Buffer.of(8)] : []), Buffer.of(byte)]),
    );
    return (readFields(wrapped).get(1) ?? []).map(Number);
  });

const number = (fields: Fields, field: number): number => numbers(fields, field)[0] ?? 0;

export function decodeProfile(body: Buffer): DecodedProfile {
  const profile = readFields(gunzipSync(body));
  const strings = (profile.get(6) ?? []).map(String);
  const text = (index: number): string => strings[index] ?? `no string ${index}`;
  const valueType = (fields: Fields): string => `${text(number(fields, 1))}/${text(number(fields, 2))}`;
  const functions = new Map(messages(profile, 5).map((one) => [number(one, 1), one]));
  const names = new Map(
    messages(profile, 4).map((location) => {
      const [line = new Map()] = messages(location, 4);
      return [number(location, 1), text(number(functions.get(number(line, 1)) ?? new Map(), 2))];
    }),
  );
  return {
    sampleTypes: messages(profile, 1).map(valueType),
    periodType: messages(profile, 11).map(valueType).join(),
    period: number(profile, 12),
    durationNanos: number(profile, 10),
    samples: messages(profile, 2).map((sample) => ({
      stack: numbers(sample, 1).map((id) => names.get(id) ?? `no location ${id}`),
      value: number(sample, 2),
    })),
    files: [...functions.values()].map((one) => text(number(one, 4))),
  };
}
