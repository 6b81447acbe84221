import type { LineLimit } from '../../base/line-limit.js';
import type { Log } from '../../base/log.js';
import type { LeftOut } from '../left-out.js';

/** Something worth saying about a manifest. */
export interface Problem {
  /** `error`: an object or a whole file is not used. `warning`: an entry is left out. `note`: not for us. */
  readonly severity: 'error' | 'warning' | 'note';
  /** File or URL. */
  readonly file: string;
  /** Counted from 1; null when it concerns the whole file. */
  readonly document: number | null;
  /** `kind namespace/name`, as far as known. */
  readonly object: string | null;
  readonly message: string;
  /** Which object, and of which Service; absent where that is not known. */
  readonly leftOut?: Pick<LeftOut, 'ref' | 'service'>;
}

/** `file: document n: object: message`. */
export function printProblem({ file, document, object, message }: Problem): string {
  return [file, document === null ? null : `document ${document}`, object, message]
    .filter((part) => part !== null)
    .join(': ');
}

/** The limit of each severity; more are of no use to a reader, and they are kept as long as the file is. */
const MAX_SHOWN = 100;

/** The problems of one group: the first of each severity, and how many more there are. */
export class ProblemList {
  private readonly shown: Problem[] = [];
  private readonly counts = { error: 0, warning: 0, note: 0 };

  add(problem: Problem): void {
    if (++this.counts[problem.severity] <= MAX_SHOWN) this.shown.push(problem);
  }

  all(): readonly Problem[] {
    const [first] = this.shown;
    if (first === undefined) return [];
    const more = (['error', 'warning', 'note'] as const).flatMap((severity): readonly Problem[] => {
      const count = this.counts[severity] - MAX_SHOWN;
      if (count <= 0) return [];
      return [{ severity, file: first.file, document: null, object: null, message: `and ${count} more like these` }];
    });
    return [...this.shown, ...more];
  }
}

/** Where problems go. A group (for example one file) is reported as a whole each time it is looked at, its present problems replacing the earlier. */
export interface ProblemSink {
  report(group: string, problems: readonly Problem[]): void;
}

const NOTE_VERBOSITY = 2;

/** Logs each problem once: when it appears, and one line when the last error of a group is gone. */
export class ProblemLog implements ProblemSink {
  private readonly known = new Map<string, ReadonlyMap<string, Problem>>();

  constructor(
    private readonly log: Log,
    private readonly lines: LineLimit,
  ) {}

  report(group: string, problems: readonly Problem[]): void {
    const before = this.known.get(group);
    if (before === undefined && problems.length === 0) return;
    const now = new Map(problems.map((problem) => [printProblem(problem), problem]));
    for (const [text, problem] of now) if (before?.has(text) !== true) this.say(problem);
    const broken = firstError(before);
    if (broken !== undefined && firstError(now) === undefined) {
      const limited = this.lines.take();
      if (limited !== null) this.log.info(0, 'Manifest is valid again', { file: broken.file, ...limited });
    }
    if (now.size === 0) this.known.delete(group);
    else this.known.set(group, now);
  }

  /** The first of each group that has any, as {@link printProblem} has them. */
  errors(): readonly string[] {
    return [...this.known.values()].flatMap((group) => {
      const error = firstError(group);
      return error === undefined ? [] : [printProblem(error)];
    });
  }

  /** Objects that are not used, or not whole, as of the last reports. */
  leftOut(): readonly LeftOut[] {
    return [...this.known.values()].flatMap((problems) =>
      [...problems.values()].flatMap(({ leftOut, severity, message }) =>
        leftOut === undefined ? [] : [{ ...leftOut, isWhole: severity !== 'warning', text: message }],
      ),
    );
  }

  private say({ severity, file, document, object, message }: Problem): void {
    const limited = severity === 'note' ? {} : this.lines.take();
    if (limited === null) return;
    const place = { file, ...(document === null ? {} : { document }), ...(object === null ? {} : { object }) };
    const fields = { ...place, ...limited };
    if (severity === 'error') this.log.error(message, 'Bad manifest', fields);
    else if (severity === 'warning') this.log.warn(`Manifest: ${message}`, fields);
    else this.log.info(NOTE_VERBOSITY, `Manifest: ${message}`, fields);
  }
}

function firstError(problems: ReadonlyMap<string, Problem> | undefined): Problem | undefined {
  return [...(problems?.values() ?? [])].find((problem) => problem.severity === 'error');
}
