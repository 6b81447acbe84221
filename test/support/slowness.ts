/** What {@link computation} takes on the machine on which a first start at 200 × 10 takes 0.2 s of processor time, as in docs/develop/measurements.md. */
const REFERENCE_MS = 40;

/** How much slower a core is here than on the machine of the documented times, by the processor time of a computation; at least 1. */
export function slownessOfCore(): number {
  const times = Array.from({ length: 4 }, () => {
    const began = process.cpuUsage();
    computation();
    const { user, system } = process.cpuUsage(began);
    return (user + system) / 1000;
  });
  return Math.max(1, Math.min(...times) / REFERENCE_MS);
}

function computation(): number {
  let sum = 0;
  for (let round = 0; round < 4; round++) {
    const rows = Array.from({ length: 20_000 }, (_, index) => `${(index * 7919) % 20_011}/${round}`).sort();
    const places = new Map(rows.map((row, index) => [row, index]));
    for (const row of rows) sum += places.get(row) ?? 0;
  }
  return sum;
}
