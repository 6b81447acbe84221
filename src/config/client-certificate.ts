import { invalid } from './errors.js';
import { isFlagSet, settingOf, textFlag, type CommandLine } from './flags.js';
import type { FlagName } from './flag-table.js';

/** Who has the client certificate of the kubeconfig made, and renewed. Said by flags alone. */
export interface ClientCertificateConfig {
  /** By which a certificate is asked for where the kubeconfig has none that counts; null: none is. */
  readonly bootstrapKubeconfig: string | null;
  /** Where key and certificate are kept. */
  readonly directory: string;
  readonly signerName: string;
  /** Whether another is asked for before it ends. */
  readonly isRotated: boolean;
}

interface ClientCertificateFlags {
  /** Null: it is left to the author of the kubeconfig. */
  readonly value: ClientCertificateConfig | null;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** Either switches it on. */
const SWITCHES = ['bootstrap-kubeconfig', 'rotate-certificates'] as const satisfies readonly FlagName[];

/** @param kubeconfig that of the configuration; empty: none. */
export function readClientCertificate(line: CommandLine, kubeconfig: string): ClientCertificateFlags {
  const bootstrapKubeconfig = textFlag(line, 'bootstrap-kubeconfig') || null;
  const isRotated = isFlagSet(line, 'rotate-certificates');
  const [directory, signerName] = [settingOf(line, 'cert-dir'), settingOf(line, 'signer-name')];
  if (bootstrapKubeconfig === null && !isRotated) {
    const why = `has no effect without ${SWITCHES.map((flag) => `--${flag}`).join(' or ')}`;
    return { value: null, problems: [], warnings: line.given.has('signer-name') ? [`--signer-name: ${why}`] : [] };
  }
  const on = bootstrapKubeconfig === null ? SWITCHES[1] : SWITCHES[0];
  const problems = [
    ...(kubeconfig === ''
      ? [`--${on}: Forbidden: needs --kubeconfig, or clientConnection.kubeconfig in --config`]
      : []),
    ...(directory === '' ? [`--cert-dir: Required value: with --${on}`] : []),
    ...(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\/[-A-Za-z0-9_.:/]+$/.test(signerName)
      ? []
      : [invalid('--signer-name', signerName, "must be 'domain/name'")]),
  ];
  return { value: { bootstrapKubeconfig, directory, signerName, isRotated }, problems, warnings: [] };
}
