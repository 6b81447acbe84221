/** What is to be and what is, in the same terms. */
export interface PlanAndDump {
  readonly plan: string;
  readonly dump: string;
  /** What was wrong with the manifests. */
  readonly errors: readonly string[];
}

/** Nothing but what stays in the kernel for LINGER_MS. Each look takes some 50 ms of processor time. */
export const LINGERING = /^(?:\+ IPv[46] kernel \S+ is needed by nothing\n)+$/;

/** Lines that only one of both sorted texts has. */
export function lineDifference({ plan, dump }: PlanAndDump): string {
  const [planned, held] = [new Set(plan.split('\n')), new Set(dump.split('\n'))];
  const missing = [...planned].filter((line) => !held.has(line)).map((line) => `- ${line}\n`);
  const surplus = [...held].filter((line) => !planned.has(line)).map((line) => `+ ${line}\n`);
  return [...missing, ...surplus].join('');
}
