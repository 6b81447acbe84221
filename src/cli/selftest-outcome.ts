import type { ExplainedPacket } from '../serve/explain-packet.js';

/** Whether answers of endpoints elsewhere go to an address that only this node knows. */
export function isLost({ verdict, endpoints }: ExplainedPacket, nodeName: string): boolean {
  if (verdict.type !== 'forward' || verdict.masquerade) return false;
  return verdict.endpoints.some((used) => endpoints.find(({ endpoint }) => endpoint === used)?.node !== nodeName);
}

/** Whether what happened is what was said. */
export function agreesWith({ verdict }: ExplainedPacket, error: string | null): boolean {
  switch (verdict.type) {
    case 'forward':
      return error === null;
    case 'reject':
      return error !== null && error !== 'ETIMEDOUT';
    case 'drop':
      return error === 'ETIMEDOUT';
    case 'none':
      return true;
  }
}

/** What `explain` has against it. */
export function reasonsOf({ verdict, kernel, observations }: ExplainedPacket): readonly string[] {
  return [
    verdict.type === 'forward' ? '' : `explain: ${verdict.type}${'because' in verdict ? `, ${verdict.because}` : ''}`,
    kernel.agrees === false ? 'explain: the kernel differs from the plan' : '',
    ...observations.filter(({ severity }) => severity === 'warning').map(({ text, remedy }) => `${text} (${remedy})`),
  ];
}

const ERRORS: Readonly<Record<string, string>> = {
  ETIMEDOUT: 'nothing came back',
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'no route to the host, by an ICMP message or this node',
  ENETUNREACH: 'no route',
};

export function outcomeOf(
  error: string | null,
  isGood: boolean,
  why: string,
): { readonly result: 'passed' | 'failed'; readonly text: string } {
  const outcome = error === null ? 'answered' : (ERRORS[error] ?? error);
  if (error === null && isGood) return { result: 'passed', text: outcome };
  return { result: 'failed', text: why === '' ? outcome : `${outcome}; ${why}` };
}
