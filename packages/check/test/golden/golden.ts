/** Documents of one kind, and what is said of them. */
export interface Golden {
  readonly apiVersion: string;
  readonly kind: string;
  /** Minor release of Kubernetes that they are for; {@link RELEASE} where it is not given. */
  readonly release?: number;
  /** Of which nothing is said. */
  readonly right: readonly string[];
  /** A body, and every finding as it is printed, without file and document. */
  readonly wrong: readonly (readonly [body: string, ...findings: string[]])[];
}

/** Text that stands for a secret: it is in no output. */
export const SECRET = 'S3cr3t';

/** In PEM and base64, of no real pair. */
export const PEM_CERTIFICATE = 'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tClV6Tmpjak4wCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K';
export const PEM_KEY = 'LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tClV6Tmpjak4wCi0tLS0tRU5EIFBSSVZBVEUgS0VZLS0tLS0K';

/** The release that most documents are for. It is the last whose gates are all known. */
export const RELEASE = 36;
