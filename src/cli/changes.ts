import type { Log } from '../base/log.js';
import type { WallClock } from '../base/timestamp.js';
import type { Config } from '../config/config.js';
import { ConfigError } from '../config/errors.js';
import type { Sources } from '../control/sources.js';
import type { ChangeLog } from '../observe/change-log.js';

/**
 * Where changes of the kernel are written down; null: nowhere.
 *
 * @param config in force.
 * @throws ConfigError
 */
export async function openChanges(
  config: () => Config,
  sources: Pick<Sources, 'versionOf'>,
  wallClock: WallClock,
  log: Log,
): Promise<ChangeLog | null> {
  const { changeLog } = config();
  if (changeLog === null) return null;
  // Loaded only where it is used: it is a file of its own.
  const { openChangeLog } = await import('../observe/change-log.js');
  const opened = await openChangeLog({
    config: changeLog,
    versionOf: (kind, key) => sources.versionOf(kind, key),
    labels: () => ({ node: config().nodeName, mode: config().mode }),
    log,
    now: () => Number(wallClock() / 1_000_000n),
  });
  if ('problem' in opened) throw new ConfigError('CONFIG_INVALID', null, [opened.problem]);
  return opened;
}
