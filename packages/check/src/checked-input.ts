import { messageOf } from '../../../src/base/error-message.js';
import { Interner } from '../../../src/sources/translate/intern.js';
import { heldFiles } from './config-map.js';
import { readFile, readListed, type Document } from './documents.js';
import type { Target } from './proxy.js';
import { FindingList, type Finding } from './findings.js';
import type { CommandLine } from './command-lines.js';
import { kubeletFile, lineFindings, settingsFindings } from './kubelet-settings.js';
import type { Mapping } from '../../../src/config/yaml.js';
import { namedFiles } from './named-files.js';
import { keyOf } from './objects.js';
import { togetherProblems } from './together.js';

/** Reads the text of a file that an argument or a document names. */
export type ReadText = (path: string, by: 'argument' | 'document') => string | Promise<string>;

/** Some objects of one kind, as an API server lists them. */
export interface ObjectPage {
  /** What a finding names as their file. */
  readonly file: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly items: readonly unknown[];
}

/** What a cluster reports of itself besides its objects. */
export interface ClusterAnswers {
  /** Minor release of its API server; null: not known. */
  readonly release: number | null;
  /** Documents that it keeps, and what a finding names as their file. */
  readonly texts: readonly (readonly [file: string, text: string])[];
  readonly findings: readonly Finding[];
  /** What could not be read, and why. */
  readonly unreadable: readonly string[];
  /** What else there is to report of how it was reached. */
  readonly notes: readonly string[];
}

/** All that is checked together. */
export interface Everything {
  readonly documents: readonly Document[];
  readonly findings: readonly Finding[];
  /** What could not be read, and why. */
  readonly unreadable: readonly string[];
  readonly notes: readonly string[];
  /** Texts by file. */
  readonly texts: ReadonlyMap<string, string>;
}

/** Collects what is checked together, wherever it is from. */
export class CheckedInput {
  readonly #documents: Document[] = [];
  readonly #findings: Finding[] = [];
  readonly #unreadable: string[] = [];
  readonly #notes: string[] = [];
  readonly #commandLines: CommandLine[] = [];
  /** The files of kubelets. */
  readonly #kubelets: Mapping[] = [];
  readonly #texts = new Map<string, string>();
  readonly #objects: Document[] = [];
  /** Findings of objects, by what is named as their file. */
  readonly #lists = new Map<string, FindingList>();
  readonly #names = new Interner();

  /** Reads files, and those that they name. */
  async readFiles(files: readonly string[], target: Target, read: ReadText): Promise<void> {
    const queue = new Map<string, Finding | null>(files.map((file) => [file, null]));
    for (const [file, namedBy] of queue) {
      const content = await this.#readOne(file, target, () => read(file, namedBy === null ? 'argument' : 'document'));
      if (typeof content !== 'string') {
        for (const named of content.flatMap(namedFiles))
          if (!queue.has(named.file)) queue.set(named.file, named.finding);
      }
      // What a file names is on the machine that it is for, which may not be this one.
      else if (namedBy === null) this.#unreadable.push(`${file}: ${content}`);
      else this.#findings.push({ ...namedBy, problem: `could not be read: ${content}` });
    }
  }

  takeObjects({ file, apiVersion, kind, items }: ObjectPage): void {
    const list = this.#lists.get(file) ?? new FindingList(file, null);
    this.#lists.set(file, list);
    this.#objects.push(...readListed({ apiVersion, kind }, items, list, this.#names));
  }

  /** Files that its documents name are on machines of the cluster: none is read here. */
  async takeAnswers({ texts, findings, unreadable, notes }: ClusterAnswers, target: Target): Promise<void> {
    this.#findings.push(...findings);
    this.#unreadable.push(...unreadable);
    this.#notes.push(...notes);
    for (const [file, text] of texts) {
      const content = await this.#readOne(file, target, () => text);
      if (typeof content === 'string') this.#unreadable.push(`${file}: ${content}`);
    }
  }

  /** An object of a file stands in place of the cluster's own of that name. */
  all({ release }: Pick<Target, 'release'>): Everything {
    // A command line does not say which of several files is its own.
    const kubelet = this.#kubelets.length === 1 ? (this.#kubelets[0] ?? null) : null;
    const own = new Set(this.#documents.flatMap(({ row }) => (row === null ? [] : keyOf(row))));
    const others = this.#objects.filter(({ row }) => row !== null && !own.has(keyOf(row)));
    return {
      documents: [...this.#documents, ...others],
      findings: [
        ...this.#findings,
        ...this.#commandLines.flatMap((line) => lineFindings(kubelet, line, release)),
        ...[...this.#lists.values()].flatMap((list) => list.all()),
      ],
      unreadable: this.#unreadable,
      notes: this.#notes,
      texts: this.#texts,
    };
  }

  /** Why it cannot be read, where it cannot. */
  async #readOne(
    file: string,
    target: Target,
    read: () => string | Promise<string>,
  ): Promise<readonly Document[] | string> {
    try {
      const text = await read();
      const { values, documents, commandLines, findings, unreadable } = readFile(text, file, target);
      if (unreadable !== null) return unreadable;
      const kubelet = kubeletFile(values);
      this.#texts.set(file, text);
      this.#findings.push(
        ...findings,
        ...togetherProblems(documents),
        ...settingsFindings(kubelet, documents, target.release),
      );
      this.#commandLines.push(...commandLines);
      if (kubelet !== null) this.#kubelets.push(kubelet);
      this.#documents.push(...documents);
      for (const within of documents.flatMap(heldFiles)) {
        const content = await this.#readOne(within.file, target, () => within.text);
        if (typeof content === 'string') this.#unreadable.push(`${within.file}: ${content}`);
      }
      return documents;
    } catch (error) {
      return messageOf(error);
    }
  }
}
