/** Documents of one kind, and what is said of them. */
export interface Golden {
  readonly apiVersion: string;
  readonly kind: string;
  /** Of which nothing is said. */
  readonly right: readonly string[];
  /** A body, and every finding as it is printed, without file and document. */
  readonly wrong: readonly (readonly [body: string, ...findings: string[]])[];
}

/** Text that stands for a secret: it is in no output. */
export const SECRET = 'S3cr3t';
