import { parseMapping } from '../base/mapping.js';
import type { OutputForm } from '../commands/shared-flags.js';
import type { Config } from '../config/config.js';
import { formatted } from '../serve/formatted.js';
import type { ServiceDetail, ServicesPage, ServiceSummary } from '../serve/service-answers.js';
import { ask } from './ask.js';
import { AskError } from './ask-error.js';
import { hasProblem, printService, printServices } from './print-services.js';
import { watch } from './watch.js';

interface Asked {
  readonly config: Pick<Config, 'statusSocket'>;
  /** Which of them; empty: all. */
  readonly named: string;
  readonly output: OutputForm;
  readonly problemsOnly: boolean;
  /** How many; 0: all of them. */
  readonly limit: number;
  /** Again and again. */
  readonly watch: boolean;
}

/** Rows in an answer. */
const PAGE = 10_000;

/**
 * Lists the Services of the running process, or shows the one that is named. The exit status.
 *
 * @throws AskError
 */
export async function services(
  asked: Asked,
  { isTerminal, write }: { readonly isTerminal: boolean; readonly write: (text: string) => Promise<void> },
): Promise<0 | 1> {
  if (!asked.watch) {
    const { text, well } = await look(asked);
    await write(text);
    return well ? 0 : 1;
  }
  return await watch(async () => (await look(asked)).text, isTerminal, write);
}

async function look(asked: Asked): Promise<{ readonly text: string; readonly well: boolean }> {
  const { output, named } = asked;
  const list = await readList(asked);
  const only = named === '' ? null : oneOf(list.rows, named);
  if (only === null) {
    const well =
      list.rows.length > 0 || named === '' ? list.rows.every(({ problems }) => problems.length === 0) : false;
    return { text: formatted(list, output, (page) => printServices(page, output === 'wide')), well };
  }
  const detail = (await readAnswer(asked.config, 'service', { key: only })) as ServiceDetail;
  return { text: formatted(detail, output, printService), well: !hasProblem(detail) };
}

/** The Service that is meant: named in full, alone of its name, or the only one that fits. */
function oneOf(rows: readonly ServiceSummary[], named: string): string | null {
  const keys = rows.map(({ key }) => key);
  if (keys.includes(named)) return named;
  const ofName = rows.filter(({ name }) => name === named);
  if (ofName.length === 1) return ofName[0]?.key ?? null;
  return keys.length === 1 ? (keys[0] ?? null) : null;
}

/** `namespace/name` of the Service that is meant; null: none is, or several. */
export async function findService(config: Pick<Config, 'statusSocket'>, named: string): Promise<string | null> {
  const { rows } = (await readAnswer(config, 'services', { q: named, limit: String(PAGE) })) as ServicesPage;
  return oneOf(rows, named);
}

async function readList(asked: Asked): Promise<ServicesPage> {
  const { named, problemsOnly, limit } = asked;
  const wanted = limit > 0 ? limit : Infinity;
  const rows: ServiceSummary[] = [];
  for (;;) {
    const page = (await readAnswer(asked.config, 'services', {
      q: named,
      offset: String(rows.length),
      limit: String(Math.min(PAGE, wanted - rows.length)),
      ...(problemsOnly ? { problems: 'only' } : {}),
      ...(asked.output === 'wide' ? { places: 'yes' } : {}),
    })) as ServicesPage;
    rows.push(...page.rows);
    // Services come and go between pages.
    if (page.rows.length === 0 || rows.length >= Math.min(wanted, page.matched)) return { ...page, offset: 0, rows };
  }
}

/** What the page of the process is answered as well. */
export async function readAnswer(
  { statusSocket }: Pick<Config, 'statusSocket'>,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<unknown> {
  const { text } = await ask(statusSocket, `/ui/api/${path}?${new URLSearchParams(query).toString()}`);
  const answer = parseMapping(text);
  if (answer === null) throw new AskError(`invalid answer on --status-socket: ${text.slice(0, 200)}`);
  return answer;
}
