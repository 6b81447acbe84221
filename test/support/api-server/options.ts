import type { SigningFiles } from '../certificates.js';
import type { PolicyRule } from './rbac.js';

export interface TlsFiles {
  readonly key: string | Buffer;
  readonly cert: string | Buffer;
  /** Certificates of clients are asked for, and accepted in place of a token when this signed them. */
  readonly clientCa: string | Buffer | null;
}

/**
 * How the server answers a request for a list as a watch: well; with 422, as where the gate is off; with an ERROR event, as where etcd is
 * too old; or as an ordinary watch, as servers do that do not know the parameters.
 */
export type WatchListSupport = 'yes' | 'invalid' | 'errorEvent' | 'ignored';

export interface ApiServerOptions {
  readonly address: string;
  /** 0: any. */
  readonly port: number;
  /** Null: plain HTTP. */
  readonly tls: TlsFiles | null;
  /** Empty: everybody is let in. */
  readonly tokens: readonly string[];
  /** What those that are let in may do; null: everything. */
  readonly rules: readonly PolicyRule[] | null;
  readonly watchList: WatchListSupport;
  /** Between bookmarks. */
  readonly bookmarkMs: number;
  /** What signs requests for certificates; null: nobody does. */
  readonly signer: SigningFiles | null;
  /** Plurals that are answered with 404. */
  readonly without: readonly string[];
  /** What it says of itself, as JSON. */
  readonly version: string;
}

/** Lets everybody do everything. */
export const DEFAULTS: ApiServerOptions = {
  address: '127.0.0.1',
  port: 0,
  tls: null,
  tokens: [],
  rules: null,
  watchList: 'yes',
  bookmarkMs: 60_000,
  signer: null,
  without: [],
  version: '{"major":"1","minor":"36"}',
};
