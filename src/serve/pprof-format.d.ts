/** The part of pprof-format that is used: making a profile and encoding it. */
declare module 'pprof-format' {
  export class StringTable {
    /** The index of a string, which is added if it is not there. */
    dedup(text: string): number;
  }

  interface ValueType {
    readonly type: number;
    readonly unit: number;
  }

  /** https://github.com/google/pprof/blob/main/proto/profile.proto */
  export class Profile {
    constructor(fields: {
      readonly stringTable: StringTable;
      readonly sampleType: ValueType[];
      readonly sample: { locationId: number[]; value: number[] }[];
      readonly location: { id: number; line: { functionId: number; line: number }[] }[];
      readonly function: { id: number; name: number; systemName: number; filename: number; startLine: number }[];
      readonly timeNanos: bigint;
      readonly durationNanos: number;
      readonly periodType: ValueType;
      readonly period: number;
    });
    encode(): Uint8Array;
  }
}
