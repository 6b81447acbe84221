import { hostname } from 'node:os';
import { Informers } from './informers.js';
import { parseOptions, type WebhookOptions } from './options.js';
import { Webhook } from './webhook.js';
import { systemClock } from '../../../src/base/clock.js';
import { messageOf } from '../../../src/base/error-message.js';
import { limitMemoryOfServer } from '../../../src/base/heap-options.js';
import { systemWallClock } from '../../../src/base/timestamp.js';
import { refusal } from '../../../src/commands/given.js';
import { printHelp } from '../../../src/commands/help.js';
import { WEBHOOK } from '../../../src/commands/webhook.js';
import { readEventLimit } from '../../../src/control/event-limit.js';
import { OWN_VERSION } from '../../../src/config/version.js';
import { createLogger, type Logger } from '../../../src/observe/log.js';
import { logStreams } from '../../../src/observe/log-streams.js';
import { connectToApi } from '../../../src/sources/kubernetes/connect/transport.js';
import { EventSender } from '../../../src/sources/kubernetes/events/event-sender.js';

/** Has the handler called with each signal that ends the process. */
type OnSignal = (handler: (signal: NodeJS.Signals) => void) => void;

/**
 * The command `webhook`: answers reviews until a signal; the exit status, 2 when the command line is wrong.
 *
 * @param onSignal the one of the program, of which there is a copy in this bundle.
 */
export async function webhook(argv: readonly string[], onSignal: OnSignal): Promise<number> {
  const options = parseOptions(argv);
  if (options === null) {
    process.stdout.write(printHelp(WEBHOOK));
    return 0;
  }
  if (!('listen' in options)) {
    process.stderr.write(refusal(options.join('\n'), WEBHOOK));
    return 2;
  }
  const log = await createLogger(
    {
      format: options.logFormat,
      verbosity: options.verbosity,
      vmodule: [],
      splitStream: false,
      infoBufferSize: 0,
      flushFrequency: 0,
    },
    logStreams,
  );
  try {
    return await serve(options, log, onSignal);
  } catch (error) {
    log.error(null, messageOf(error));
    return 1;
  }
}

async function serve(options: WebhookOptions, log: Logger, onSignal: OnSignal): Promise<number> {
  limitMemoryOfServer();
  const clock = systemClock;
  const wallClock = systemWallClock();
  let end: (status: number) => void = () => undefined;
  const ended = new Promise<number>((resolve) => {
    end = resolve;
  });
  const rates = options.events;
  const limit = rates.limitFile === null ? null : readEventLimit(rates.limitFile, clock, log);
  if (limit !== null && 'problem' in limit) throw new Error(limit.problem);
  const sender = { controller: 'pointsman-webhook', hostname: hostname() };
  const events = new EventSender({ ...sender, clock, wallClock, log, rates, limit });
  const now = (): number => Number(wallClock() / 1000n) / 1000;
  const onFatal = (error: Error): void => {
    log.error(error, 'cannot go on');
    end(1);
  };
  const server = new Webhook({ options, clock, now, log, events, onFatal });
  const { kubeconfig } = options;
  const connection = await connectToApi({
    kubeconfig,
    master: '',
    qps: 5,
    burst: 10,
    clock,
    log,
    userAgent: `pointsman-webhook/${OWN_VERSION}`,
  });
  const informers = new Informers({ connection, cluster: server.cluster, clock, log });
  onSignal((signal) => {
    log.info(0, 'stopping', { signal });
    end(0);
  });
  try {
    await server.start();
    const [reviews, probes] = server.ports;
    log.info(0, 'answering reviews', { port: reviews, probes });
    informers.start();
    events.start(connection);
    return await ended;
  } finally {
    events.stop();
    await Promise.allSettled([informers.stop(), server.stop()]);
    connection.close();
  }
}
