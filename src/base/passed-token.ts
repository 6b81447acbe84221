/**
 * The header that brings a bearer token past who takes `Authorization` for itself: an API server does, and does not pass it on to the pod that a request is for. It
 * counts as `Authorization` does where that is not given.
 */
export const PASSED_TOKEN_HEADER = 'x-pointsman-authorization';
