const QUANTITY = /^([-+]?)(\d+(?:\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?\d+)?$/;

const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const BINARY = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/** Whether text is a Kubernetes resource quantity, such as `64Ki`. */
export function isQuantity(text: string): boolean {
  return QUANTITY.test(text);
}

export const OUT_OF_FLOAT32 = 'must be a number of 32 bits';

/** Whether a number is finite in the precision that Kubernetes' components read it in. */
export function isFloat32(value: number): boolean {
  return Number.isFinite(Math.fround(value));
}

/** A quantity as a number, rounded up; 0 for text that is none. */
export function quantityValue(text: string): number {
  const [, sign = '', digits = '0', suffix = ''] = QUANTITY.exec(text) ?? [];
  return (sign === '-' ? -1 : 1) * Math.ceil(Number(digits) * scale(suffix));
}

function scale(suffix: string): number {
  if (BINARY.includes(suffix)) return 1024 ** (BINARY.indexOf(suffix) + 1);
  const exponent = DECIMAL[suffix] ?? Number(suffix.slice(1));
  return 10 ** exponent;
}
