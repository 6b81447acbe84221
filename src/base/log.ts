/** The little that every stage needs of a logger. Verbosity is that of `-v`: 0 always shows. */
export interface Log {
  info(verbosity: number, message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(error: unknown, message: string, fields?: Readonly<Record<string, unknown>>): void;
}
