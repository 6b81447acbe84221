import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import type { HcnAddon, HcnKind, HcnOperation } from '../../src/native/contract.js';
import { isNativeError } from '../../src/native/errors.js';

/** HRESULTs by the names that the addon gives them. */
const HRESULTS: Readonly<Record<string, number>> = {
  E_NOTIMPL: 0x80004001,
  E_FAIL: 0x80004005,
  E_INVALIDARG: 0x80070057,
  ERROR_ALREADY_EXISTS: 0x800700b7,
  ERROR_NOT_FOUND: 0x80070490,
  RPC_S_SERVER_UNAVAILABLE: 0x800706ba,
  HCN_E_NETWORK_NOT_FOUND: 0x803b0001,
  HCN_E_ENDPOINT_NOT_FOUND: 0x803b0002,
  HCN_E_PORT_ALREADY_EXISTS: 0x803b0013,
  HCN_E_REQUEST_UNSUPPORTED: 0x803b0015,
  HCN_E_ENTITY_HAS_REFERENCES: 0x803b002c,
};
/** HCN_NOTIFICATIONS. */
const NETWORK_CREATED = 2;
const DISCONNECTED = 0x1000000;
const NO_ID = '00000000-0000-0000-0000-000000000000';

/** A call of a stand-in DLL, such as `create.loadBalancer`, with what it is about. */
export interface HnsCall {
  readonly name: string;
  readonly id: string;
  readonly text: string;
}

interface Answer {
  readonly result: number;
  readonly text: string;
  readonly record: string;
}

/** What the stand-in DLLs ask, in their words (stand-in/link.h); `hns` holds the objects and the rules. */
export class HnsServer {
  /** Every call since it was emptied last. */
  readonly calls: HnsCall[] = [];
  /** Hears of each call before it is carried out; what it answers is answered in its place. */
  intercept: (call: HnsCall) => Answer | null = () => null;
  /** Hears of each call after it was carried out, before that is answered. */
  done: (call: HnsCall) => void = () => undefined;
  readonly #server = createServer((socket) => {
    this.#serve(socket);
  });

  constructor(private readonly hns: HcnAddon) {}

  /** The environment of a process that is to find it. */
  async start(): Promise<Readonly<Record<string, string>>> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return { HNS_STAND_IN_PORT: String((this.#server.address() as AddressInfo).port) };
  }

  stop(): void {
    this.#server.close();
    this.#server.unref();
  }

  /** Those of a kind that change something. */
  changes(): readonly HnsCall[] {
    return this.calls.filter(isChange);
  }

  #serve(socket: Socket): void {
    const chunks: Buffer[] = [];
    socket
      .on('error', () => undefined)
      .on('data', (chunk) => {
        chunks.push(chunk);
        const call = readCall(Buffer.concat(chunks));
        if (call !== null) void (call.name === 'watch' ? this.#watch(socket) : this.#serveCall(socket, call));
      });
  }

  async #serveCall(socket: Socket, call: HnsCall): Promise<void> {
    this.calls.push(call);
    const { result, text, record } = this.intercept(call) ?? (await this.#answer(call));
    this.done(call);
    const [words, reason] = [Buffer.from(text), Buffer.from(record)];
    socket.end(Buffer.concat([Buffer.from(`${result} ${words.length} ${reason.length}\n`), words, reason]));
  }

  /** The first line says that the watch has begun. */
  async #watch(socket: Socket): Promise<void> {
    const stop = await this.hns.hcnWatch(({ networks, disconnected }) => {
      if (networks) socket.write(`${NETWORK_CREATED}\n`);
      if (disconnected) socket.write(`${DISCONNECTED}\n`);
    });
    socket.on('close', stop);
    socket.write('0\n');
  }

  async #answer({ name, id, text }: HnsCall): Promise<Answer> {
    const done = (answer: string): Answer => ({ result: 0, text: answer, record: '' });
    try {
      if (name === 'GET') {
        const { major, minor } = await this.hns.hcnVersion();
        return done(JSON.stringify({ Success: true, Output: { Major: major, Minor: minor } }));
      }
      const [verb, kind] = name.split('.') as [string, HcnKind];
      if (verb === 'enumerate') {
        const ids = await this.hns.hcnIds(kind);
        return done(JSON.stringify(ids.map((id) => id.toUpperCase())));
      }
      if (verb !== 'open' && verb !== 'query') return done(await this.#apply(operationOf(verb, kind, id, text)));
      const [found] = await this.hns.hcnList(kind, [id.toLowerCase()]);
      if (found === undefined)
        return refusal(kind === 'endpoint' ? 'HCN_E_ENDPOINT_NOT_FOUND' : 'ERROR_NOT_FOUND', 'not found');
      return done(verb === 'open' ? found.id : JSON.stringify({ ID: found.id.toUpperCase(), ...found.properties }));
    } catch (error) {
      return isNativeError(error)
        ? refusal(error.errno ?? 'E_FAIL', error.kernelMessage ?? error.message)
        : refusal('E_FAIL', String(error));
    }
  }

  async #apply(operation: HcnOperation): Promise<string> {
    const [outcome] = await this.hns.hcnApply([operation]);
    if (typeof outcome !== 'string') throw outcome ?? new Error('no outcome');
    return outcome;
  }
}

/** Whether it changes something. */
export function isChange({ name }: HnsCall): boolean {
  return /^(?:create|modify|delete)\./.test(name);
}

/** As HNS words it. */
export function refusal(name: string, words: string): Answer {
  const result = HRESULTS[name] ?? HRESULTS['E_FAIL'] ?? 0;
  return { result, text: '', record: JSON.stringify({ Success: false, Error: words, ErrorCode: result }) };
}

function operationOf(verb: string, kind: HcnKind, id: string, text: string): HcnOperation {
  const [own = '', network = ''] = id.toLowerCase().split('/');
  const settings = text === '' ? {} : (JSON.parse(text) as object);
  const chosen = own === NO_ID ? null : own;
  if (verb === 'delete') return { type: 'delete', kind: kind === 'endpoint' ? kind : 'loadBalancer', id: own };
  if (verb === 'modify') return { type: 'modify', kind: 'loadBalancer', id: own, settings };
  if (kind === 'endpoint') return { type: 'create', kind, network, id: chosen, settings };
  return { type: 'create', kind: 'loadBalancer', id: chosen, settings };
}

/** Null: not all of it is there. */
function readCall(bytes: Buffer): HnsCall | null {
  const end = bytes.indexOf('\n');
  if (end < 0) return null;
  const [name = '', id = '', length = ''] = bytes.subarray(0, end).toString().split(' ');
  const text = bytes.subarray(end + 1);
  return text.length < Number(length) ? null : { name, id, text: text.toString() };
}
