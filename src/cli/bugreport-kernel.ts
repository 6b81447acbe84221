import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemFiles } from '../config/files.js';
import { loadConfig, type Loaded } from '../config/load.js';
import type { Machine } from '../control/mode.js';
import { planSettings } from '../control/settings.js';
import { Planner } from '../plan/planner.js';
import type { Log } from '../base/log.js';
import { ARGUMENTS_PAGE, type ProcessArguments } from '../serve/status-pages.js';
import { ask } from './ask.js';
import { dumped } from './commands.js';
import { differences, wanted, type Wanted } from './diff.js';

/** How long the API server is waited for. */
const SOURCES_MS = 20_000;

const SILENT: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** What the kernel holds, and what it should by what sources have now: read beside the running process, which takes none of its time. */
export class KernelParts {
  private loaded: Promise<Loaded> | null = null;
  private read: Promise<Wanted> | null = null;

  constructor(
    private readonly socket: string | null,
    private readonly machine: Machine,
  ) {}

  async dump(): Promise<string> {
    const { config } = await this.configuration();
    const { planner } = await this.wanted().catch(() => ({ planner: new Planner(planSettings(config)) }));
    return textOf(await dumped(config, this.machine, SILENT, planner));
  }

  async diff(): Promise<string> {
    const { config } = await this.configuration();
    const { text, errors } = await differences(config, await this.wanted(), this.machine, SILENT);
    return text + textOf(errors);
  }

  private configuration(): Promise<Loaded> {
    return (this.loaded ??= loadAs(this.socket));
  }

  private wanted(): Promise<Wanted> {
    return (this.read ??= this.readSources());
  }

  private async readSources(): Promise<Wanted> {
    const { config, version } = await this.configuration();
    return wanted(config, version, SILENT, SOURCES_MS);
  }
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

/** The configuration as the running process was started with it. @throws AskError, ConfigError, or that it cannot be read again. */
async function loadAs(socket: string | null): Promise<Loaded> {
  const { text } = await ask(socket, ARGUMENTS_PAGE);
  const { argv, folder } = JSON.parse(text) as ProcessArguments;
  process.chdir(folder);
  const pipe = argv.find((word) => isPipe(word.replace(/^--config=/, '')));
  if (pipe !== undefined) throw new Error(`${pipe} is a pipe, which cannot be read again`);
  const loaded = loadConfig(argv, systemFiles);
  if (loaded.command === 'run') return loaded;
  throw new Error('the process was not started as a proxy');
}

function isPipe(path: string): boolean {
  return statSync(resolve(path), { throwIfNoEntry: false })?.isFIFO() === true;
}
