import type { ApiConnection } from '../connection.js';
import { CertifiedConnection } from './certified-connection.js';
import { CertificateKeeper, type KeeperParts } from './keeper.js';

/**
 * The way to the API server by a kubeconfig whose certificate is asked for if there is none that counts, and renewed. Its requests wait for the first one.
 *
 * @throws KubeconfigError when the kubeconfig to begin with is not usable as configured.
 */
export async function connectCertified(parts: KeeperParts): Promise<ApiConnection> {
  const { config, connect, kubeconfig, log } = parts;
  const { bootstrapKubeconfig, isRotated } = config;
  const keeper = new CertificateKeeper(parts);
  const ending = new AbortController();
  const renew = (connection: ApiConnection): void => {
    keeper.renew(connection, ending.signal).catch((error: unknown) => {
      log.error(error, 'the client certificate is not renewed any more');
    });
  };
  const flaw = await keeper.flaw();
  if (flaw !== null && bootstrapKubeconfig !== null) {
    // What is wrong with that is known at the start.
    (await connect(bootstrapKubeconfig)).close();
    log.warn('the kubeconfig cannot be used, a client certificate is asked for', { kubeconfig, because: flaw });
    const connection = keeper.first(bootstrapKubeconfig, ending.signal);
    if (isRotated) connection.then(renew, () => undefined);
    return new CertifiedConnection(connection, ending);
  }
  const connection = await connect(kubeconfig);
  if (!isRotated) return connection;
  if (await keeper.isOurs()) {
    renew(connection);
    return new CertifiedConnection(Promise.resolve(connection), ending);
  }
  log.warn('--rotate-certificates: has no effect: pointsman did not request the certificate of the kubeconfig', {
    kubeconfig,
  });
  return connection;
}
