import { EndpointList, printEndpoint } from '../../base/endpoint-list.js';
import { addressBytes, familyOf } from '../../base/ip.js';
import type { IpvsAddon } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import type { PacketScope } from '../../plan/types.js';
import type { AffinityQuestion, Inspection } from '../contract.js';
import { nameService } from './wire.js';

/**
 * The endpoint to which persistence sends the client again. The kernel's entries keep destinations that wait for the end of
 * their connections, but these count no more (net.ipv4.vs.expire_quiescent_template). Only destinations to which the client
 * may be sent are an answer.
 */
export async function rememberedEndpoint(
  ipvs: Pick<IpvsAddon, 'ipvsRemembered'>,
  { frontend, destination }: PacketScope,
  affinity: AffinityQuestion | null,
): Promise<Pick<Inspection, 'remembered' | 'rememberedUnknown'>> {
  if (affinity === null || affinity.source === null) return { remembered: null };
  const { port, protocol } = parseFrontendKey(frontend);
  const service = nameService({ address: destination, port, protocol });
  try {
    const packed = await ipvs.ipvsRemembered(service, addressBytes(affinity.source));
    if (packed === null) return { remembered: null };
    const list = new EndpointList(familyOf(destination), packed);
    const found = printEndpoint(list.address(0), list.port(0));
    const isFound = (endpoint: string): boolean =>
      list.port(0) === 0 ? host(endpoint) === host(found) : endpoint === found;
    return { remembered: affinity.endpoints.find(isFound) ?? null };
  } catch (error) {
    if (!isNativeError(error) || error.errno !== 'EFBIG') throw error;
    return { remembered: null, rememberedUnknown: error.message };
  }
}

function host(endpoint: string): string {
  return endpoint.slice(0, endpoint.lastIndexOf(':'));
}
