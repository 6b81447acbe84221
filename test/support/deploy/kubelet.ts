import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ApiObject } from '../api-objects.js';
import type { HttpAnswer, Lab } from '../lab/lab.js';
import type { ProxyScope } from '../lab/proxy.js';
import { layOutImage } from './image.js';
import { fieldsOf, items } from './kustomize.js';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const LOADER = '/lib64/ld-linux-x86-64.so.2';
/** Of the machine, in a container's root. */
const HOST_LIBRARIES = '/.host/usr/lib/x86_64-linux-gnu:/.host/usr/lib64';
const ACCOUNT = '/run/secrets/kubernetes.io/serviceaccount';

export interface KubeletOptions {
  readonly nodeName: string;
  readonly nodeAddress: string;
  /** Folder with a service account's token and the authority's certificate. */
  readonly account: string;
  readonly configMaps: readonly ApiObject[];
}

/** A container that runs, or has run. */
export interface Container {
  /** Ends as the container's first process does. */
  readonly process: ChildProcess;
  /** The container's first process, as the machine numbers it; throws before it runs. */
  readonly pid: () => number;
  /** Everything it has written. */
  readonly log: () => string;
}

interface Mount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/**
 * What a kubelet and a container runtime make of a pod on the host's network, for one pod at a time and as far as deploy/ needs it: command
 * and environment, volumes, security context, probes. Containers are processes in the laboratory's node with a root of their own.
 */
export class Kubelet {
  readonly #folder = mkdtempSync(join(tmpdir(), 'lab-kubelet-'));
  readonly #containers: ChildProcess[] = [];
  #revision = 0;

  constructor(
    t: ProxyScope,
    private readonly lab: Lab,
    private readonly options: KubeletOptions,
  ) {
    t.teardown(async () => {
      await Promise.all(this.#containers.map(ended));
      rmSync(this.#folder, { recursive: true });
    });
    layOutImage(this.root);
    for (const configMap of options.configMaps) this.project(configMap);
  }

  /**
   * Writes the volume of a ConfigMap, or writes it anew: files are links through `..data`, which is renamed over, so that all of them change at
   * once.
   */
  project(configMap: ApiObject): void {
    const volume = this.#volume(String(fieldsOf(configMap['metadata'])['name']));
    const revision = `..revision-${++this.#revision}`;
    mkdirSync(join(volume, revision), { recursive: true });
    const files = Object.entries(fieldsOf(configMap['data']));
    for (const [name, text] of files) writeFileSync(join(volume, revision, name), String(text));
    symlinkSync(revision, join(volume, '..data_tmp'));
    renameSync(join(volume, '..data_tmp'), join(volume, '..data'));
    for (const [name] of files) {
      if (!existsSync(join(volume, name))) symlinkSync(join('..data', name), join(volume, name));
    }
    rmSync(join(volume, `..revision-${this.#revision - 1}`), { recursive: true, force: true });
  }

  /** Starts a container, whose command is the first process of a PID namespace. */
  start(pod: ApiObject, container: ApiObject, input = '/dev/null'): Container {
    const pidFile = join(this.#folder, `pid-${this.#containers.length}`);
    const script = [
      'set -e',
      // The machine's /proc still, and read by the shell itself, which the command takes the place of.
      `read -r pid rest < /proc/self/stat; echo "$pid" > ${quote(pidFile)}`,
      ...this.#mountCommands(pod, container),
      `exec env -i ${[...this.#environment(container), 'chroot', this.root, ...confinement(container), ...this.#command(container)].map(quote).join(' ')} < ${quote(input)}`,
    ].join('\n');
    const child = this.lab.spawn('node', ['unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', script]);
    this.#containers.push(child);
    let log = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (log += text));
    }
    return { process: child, pid: () => Number(readFileSync(pidFile, 'utf8')), log: () => log };
  }

  /** Runs a container to its end, with a file as its standard input; resolves to its exit status. */
  async run(
    pod: ApiObject,
    container: ApiObject,
    input?: string,
  ): Promise<{ readonly status: number | null; readonly log: string }> {
    const { process, log } = this.start(pod, container, input);
    await closed(process);
    return { status: process.exitCode, log: log() };
  }

  /** Asks what a probe of the container asks. */
  probe(container: ApiObject, probe: ApiObject): Promise<HttpAnswer> {
    const { path, port } = fieldsOf(probe['httpGet']);
    const named = items(container['ports']).find(({ name }) => name === port);
    const url = `http://${this.options.nodeAddress}:${String(named?.['containerPort'])}${String(path)}`;
    return this.lab.http('node', url, Number(probe['timeoutSeconds']) * 1000);
  }

  /** The root of the containers, as this process sees it. */
  get root(): string {
    return join(this.#folder, 'root');
  }

  #volume(configMap: string): string {
    return join(this.#folder, 'volumes', configMap);
  }

  /** Words of the form `NAME=value`. */
  #environment(container: ApiObject): string[] {
    const environment: Record<string, string> = {
      PATH,
      KUBERNETES_SERVICE_HOST: '10.96.0.1',
      KUBERNETES_SERVICE_PORT: '443',
    };
    for (const { name, value, valueFrom } of items(container['env'])) {
      const { fieldPath } = fieldsOf(fieldsOf(valueFrom)['fieldRef']);
      environment[String(name)] = fieldPath === 'spec.nodeName' ? this.options.nodeName : String(value);
    }
    return Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  }

  #command(container: ApiObject): string[] {
    const command = container['command'];
    if (!Array.isArray(command)) throw new TypeError('a container without a command');
    const environment = new Map(this.#environment(container).map((word) => word.split('=', 2) as [string, string]));
    return command.map((word) =>
      String(word).replace(/\$\((\w+)\)/g, (given, name: string) => environment.get(name) ?? given),
    );
  }

  #mountCommands(pod: ApiObject, container: ApiObject): string[] {
    const root = this.root;
    const { privileged, readOnlyRootFilesystem } = fieldsOf(container['securityContext']);
    const mounts = this.#mounts(pod, container);
    return [
      `mount --bind ${quote(root)} ${quote(root)}`,
      ...bind('/', join(root, '.host'), false),
      `mount --rbind /dev ${quote(join(root, 'dev'))}`,
      ...bind('/sys', join(root, 'sys'), privileged !== true),
      `mount -t proc proc ${quote(join(root, 'proc'))}`,
      ...mounts.flatMap(({ source, target, readOnly }) => bind(source, join(root, target), readOnly)),
      ...(privileged === true ? [] : bind(join(root, 'proc/sys'), join(root, 'proc/sys'), true)),
      ...(readOnlyRootFilesystem === true ? [`mount -o remount,bind,ro ${quote(root)}`] : []),
    ];
  }

  /** The container's volumes, with the place of each made on both sides. */
  #mounts(pod: ApiObject, container: ApiObject): Mount[] {
    const volumes = items(pod['volumes']);
    const named = items(container['volumeMounts']).map(({ name, mountPath, readOnly }): Mount => {
      const volume = volumes.find((each) => each['name'] === name);
      if (volume === undefined) throw new Error(`there is no volume ${String(name)}`);
      return { source: this.#source(volume), target: String(mountPath), readOnly: readOnly === true };
    });
    const account = { source: this.options.account, target: ACCOUNT, readOnly: true };
    for (const { source, target } of [...named, account])
      this.#place(join(this.root, target), source.endsWith('.lock'));
    return [...named, account];
  }

  #source(volume: ApiObject): string {
    const { name } = fieldsOf(volume['configMap']);
    if (typeof name === 'string') return this.#volume(name);
    if (volume['emptyDir'] !== undefined) {
      const empty = join(this.#folder, 'empty', String(volume['name']));
      this.#place(empty, false);
      return empty;
    }
    const { path, type } = fieldsOf(volume['hostPath']);
    // The kernel's own files are those of the node, as its containers' are.
    if (String(path).startsWith('/proc/')) return String(path);
    const source = join(this.#folder, 'host', String(path));
    this.#place(source, type === 'FileOrCreate');
    return source;
  }

  #place(path: string, file: boolean): void {
    mkdirSync(file ? join(path, '..') : path, { recursive: true });
    if (file) writeFileSync(path, '', { flag: 'a' });
  }
}

/** How a runtime confines a container that is not privileged. */
function confinement(container: ApiObject): string[] {
  const { privileged, allowPrivilegeEscalation, capabilities } = fieldsOf(container['securityContext']);
  if (privileged === true) return [];
  const { drop, add } = fieldsOf(capabilities);
  if (!Array.isArray(drop) || drop[0] !== 'ALL' || !Array.isArray(add)) {
    throw new TypeError('a container that is neither privileged nor told its capabilities');
  }
  const kept = ['-all', ...add.map((name) => `+${String(name).toLowerCase()}`)].join();
  const escalation = allowPrivilegeEscalation === false ? ['--no-new-privs'] : [];
  // The image has no such program, so the machine's is run, with the machine's libraries.
  const setpriv = [LOADER, '--library-path', HOST_LIBRARIES, '/.host/usr/bin/setpriv'];
  return [...setpriv, `--bounding-set=${kept}`, `--inh-caps=${kept}`, ...escalation, '--'];
}

function bind(source: string, target: string, readOnly: boolean): string[] {
  const mount = `mount --bind ${quote(source)} ${quote(target)}`;
  return readOnly ? [mount, `mount -o remount,bind,ro ${quote(target)}`] : [mount];
}

function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

async function ended(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await closed(child);
}

async function closed(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
}
