/**
 * Begins to count the time of the main thread. Answers how many milliseconds have been spent since: no more than the clock says, as other threads run beside it,
 * and no more than the processor time of the process, as others of the machine interrupt it.
 */
export function spentTime(): () => number {
  const [began, used] = [performance.now(), process.cpuUsage()];
  return () => {
    const { user, system } = process.cpuUsage(used);
    return Math.min(performance.now() - began, (user + system) / 1000);
  };
}
