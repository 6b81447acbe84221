/** Bytes that are not what the API server's encodings allow. */
export class CodecError extends Error {
  override readonly name = 'CodecError';
  readonly code = 'SOURCE_UNDECODABLE';
}

/** The bytes ended early; what came before was good. */
export class TruncatedError extends CodecError {}
