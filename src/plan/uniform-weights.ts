/** Whether endpoints have equal weights, so that chance alone does. */
export function isUniform(weights: readonly number[]): boolean {
  return weights.every((weight) => weight === weights[0]);
}
