import { decodeConfiguration } from './decode.js';
import { applyPlatformDefaults, defaultMode, inForce } from './effective.js';
import { FLAGS } from './flag-table.js';
import { configurationFields } from './write.js';
import { Mapping } from './yaml.js';

/** What counts where nothing is set. */
export interface DefaultSettings {
  /** The document as it is shown. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** By the flag's name, as its value is printed. */
  readonly flags: ReadonlyMap<string, string>;
}

/** @param mode that is in force: some defaults depend on it. */
export function defaultSettings(mode: string, platform: NodeJS.Platform): DefaultSettings {
  const document = applyPlatformDefaults({ ...decodeConfiguration(new Mapping([])), mode }, platform);
  return {
    fields: configurationFields({ ...inForce(document), mode: defaultMode(platform) }),
    flags: new Map(FLAGS.map(({ name, initial }) => [name, initial])),
  };
}
