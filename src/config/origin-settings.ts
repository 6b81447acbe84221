import { messageOf } from '../base/error-message.js';
import { HEADER_FORM, parseHeaderFile, parseHeaders, splitOrigin, type OriginHeader } from '../base/request-header.js';
import type { HttpHeader, UrlSource } from './config.js';
import type { ConfigFiles } from './files.js';
import type { FlagName } from './flag-table.js';
import { listFlag, type CommandLine } from './flags.js';

const FILE_FLAGS = {
  authorityFile: 'manifests-ca-file',
  certificateFile: 'manifests-cert-file',
  keyFile: 'manifests-key-file',
} as const satisfies Record<string, FlagName>;
type FileSetting = keyof typeof FILE_FLAGS;
const FILE_SETTINGS: readonly FileSetting[] = ['authorityFile', 'certificateFile', 'keyFile'];

interface Setting extends Record<FileSetting, string | null> {
  readonly headers: HttpHeader[];
  /** Whether a header file has headers for it. */
  inFiles: boolean;
}

/**
 * With what the URLs of each origin are asked. What a value is for is said by the origin it begins with; without one it is for the
 * only origin there is, and an error where there are several: a credential must not go to another host than it is meant for.
 */
export class OriginSettings {
  readonly problems: string[] = [];
  private readonly settings: ReadonlyMap<string, Setting>;
  private readonly headerFiles: readonly string[];

  /** @param origins of all URLs in --manifests. */
  constructor(
    private readonly line: CommandLine,
    private readonly files: ConfigFiles,
    origins: ReadonlySet<string>,
  ) {
    const empty = { authorityFile: null, certificateFile: null, keyFile: null, inFiles: false };
    this.settings = new Map([...origins].map((origin) => [origin, { ...empty, headers: [] }]));
    this.headerFiles = listFlag(line, 'manifests-header-file');
    this.readHeaders();
    for (const file of this.headerFiles) this.readHeaderFile(file);
    for (const setting of FILE_SETTINGS) this.readFileFlag(setting);
    this.checkPairs();
  }

  of(url: string): Omit<UrlSource, 'type' | 'url' | 'name'> {
    const { origin } = new URL(url);
    const {
      headers = [],
      authorityFile = null,
      certificateFile = null,
      keyFile = null,
    } = this.settings.get(origin) ?? {};
    const { headerFiles } = this;
    return { headers, headerFiles, isOnlyOrigin: this.settings.size === 1, authorityFile, certificateFile, keyFile };
  }

  hasHeaders(origin: string): boolean {
    const setting = this.settings.get(origin);
    return setting !== undefined && (setting.inFiles || setting.headers.length > 0);
  }

  private readHeaders(): void {
    const at = '--manifests-header';
    for (const header of listFlag(this.line, 'manifests-header').flatMap(parseHeaders)) {
      const setting = this.target(at, header);
      if (setting !== null && header !== null) setting.headers.push({ name: header.name, value: header.value });
    }
  }

  private readHeaderFile(file: string): void {
    const at = `--manifests-header-file: ${file}`;
    let text: string;
    try {
      text = this.files.read(file);
    } catch (error) {
      this.problems.push(`${at}: cannot be read: ${messageOf(error)}`);
      return;
    }
    for (const { line, header } of parseHeaderFile(text)) {
      const setting = this.target(`${at}: line ${line}`, header);
      if (setting !== null) setting.inFiles = true;
    }
  }

  private readFileFlag(field: FileSetting): void {
    const at = `--${FILE_FLAGS[field]}`;
    for (const value of listFlag(this.line, FILE_FLAGS[field])) {
      const split = splitOrigin(value);
      if (split === null || split.rest === '') {
        this.problems.push(`${at}: Invalid value: must be a path or 'https://host:port path'`);
        continue;
      }
      const setting = this.target(at, split);
      if (setting === null) continue;
      if (setting[field] !== null) this.problems.push(`${at}: Forbidden: is given twice for the same origin`);
      setting[field] = split.rest;
    }
  }

  private checkPairs(): void {
    for (const [origin, setting] of this.settings) {
      const { authorityFile, certificateFile, keyFile } = setting;
      if ((certificateFile === null) !== (keyFile === null))
        this.problems.push(`--manifests-cert-file, --manifests-key-file: Required value: ${origin} needs both or none`);
      if (origin.startsWith('https:') || FILE_SETTINGS.every((field) => setting[field] === null)) continue;
      const flag = authorityFile === null ? 'manifests-cert-file' : 'manifests-ca-file';
      this.problems.push(`--${flag}: Forbidden: ${origin} is not asked over TLS`);
    }
  }

  /** The settings that a value belongs to; null after noting why there are none. */
  private target(at: string, value: Pick<OriginHeader, 'origin'> | null): Setting | null {
    const [first, ...others] = this.settings.values();
    let problem: string;
    if (value === null) problem = `Invalid value: must be ${HEADER_FORM}`;
    else if (first === undefined) problem = 'Forbidden: only with a URL in --manifests';
    else if (value.origin !== null) {
      const setting = this.settings.get(value.origin);
      if (setting !== undefined) return setting;
      problem = `Forbidden: no URL in --manifests has the origin ${value.origin}`;
    } else if (others.length === 0) return first;
    else
      problem = `Forbidden: must begin with the origin it is for, as --manifests has several: ${[...this.settings.keys()].join(', ')}`;
    this.problems.push(`${at}: ${problem}`);
    return null;
  }
}
