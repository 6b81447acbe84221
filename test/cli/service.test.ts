import t from 'tap';
import { runAsService } from '../../src/cli/service.js';
import { handleSignals } from '../../src/cli/signals.js';
import type { ServiceControl } from '../../src/native/contract.js';

/** A service manager, and what it was told. */
function manager() {
  const reported: string[] = [];
  let control: (control: ServiceControl) => void = () => undefined;
  return {
    reported,
    asks: (what: ServiceControl): void => {
      control(what);
    },
    service: {
      serviceConnect: (onControl: typeof control): Promise<void> => {
        control = onControl;
        reported.push('connected');
        return Promise.resolve();
      },
      serviceReport: (state: string, number: number): void => {
        reported.push(`${state} ${number}`);
      },
    },
  };
}

for (const what of ['stop', 'shutdown'] as const)
  t.test(`${what}: the Windows service ends as by a signal, and reports it`, async (t) => {
    const { reported, asks, service } = manager();
    const status = runAsService(
      service,
      () =>
        new Promise((resolve) => {
          handleSignals((signal) => {
            reported.push(signal);
            resolve(0);
          });
        }),
    );
    await Promise.resolve();
    t.same(reported, ['connected', 'running 0']);
    asks(what);
    t.equal(await status, 0);
    t.same(reported.slice(2), ['stopping 20', 'SIGTERM', 'stopped 0']);
  });

t.test('a Windows service that fails does not report a stop, so that the manager sees a crash', async (t) => {
  const { reported, service } = manager();
  t.equal(await runAsService(service, () => Promise.resolve(1)), 1);
  await t.rejects(
    runAsService(service, () => Promise.reject(new Error('no network'))),
    /no network/,
  );
  t.notMatch(reported.join(), /stop/);
});
