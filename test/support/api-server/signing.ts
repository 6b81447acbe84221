import type { ApiObject } from '../api-objects.js';
import { requestedSubject, signRequest, type SigningFiles } from '../certificates.js';
import type { StatusFields } from './encoding.js';
import { nameOf, resourceOfKind } from './resources.js';
import type { ApiStore } from './store.js';

/**
 * What becomes of requests for certificates: they are signed at once, wait, are approved and wait, are denied, fail at the signer, or get a certificate for
 * another key.
 */
export type SigningPolicy = 'sign' | 'wait' | 'approve' | 'deny' | 'fail' | 'otherKey';

interface SigningSpec {
  readonly request: string;
  readonly signerName: string;
  readonly usages: readonly string[];
}

interface SigningStatus {
  readonly certificate?: string;
  readonly conditions?: readonly { readonly type: string }[];
}

/** Approves and signs as an operator and the controller manager would. */
export class ServedSigning {
  policy: SigningPolicy = 'sign';
  /** How long certificates are good for. */
  seconds = 3600;

  /** @param authority may be replaced at any time; null: everything waits. */
  constructor(public authority: SigningFiles | null) {}

  /** Why a server does not take an object, as the real one says it of requests for certificates; null: it does. */
  problem(store: ApiStore, object: ApiObject): StatusFields | null {
    const resource = resourceOfKind(object['kind']);
    if (resource.kind !== 'CertificateSigningRequest') return null;
    if (store.get(resource, nameOf(object)) !== null)
      return { code: 409, reason: 'AlreadyExists', message: 'the request already exists' };
    const { request, signerName, usages } = object['spec'] as SigningSpec;
    const subject = requestedSubject(Buffer.from(request, 'base64').toString());
    const invalid = (message: string): StatusFields => ({ code: 422, reason: 'Invalid', message });
    if (subject === null) return invalid('spec.request: Invalid value: is not signed by its own key');
    const isKubelet = signerName === 'kubernetes.io/kube-apiserver-client-kubelet';
    if (isKubelet && !/^O ?= ?system:nodes, ?CN ?= ?system:node:/.test(subject))
      return invalid(`spec.request: Invalid value: subject ${subject}`);
    return [...usages].sort().join() === 'client auth,digital signature' ? null : invalid('spec.usages: Invalid value');
  }

  /** Judges what nobody has judged to the end. */
  judge(store: ApiStore): void {
    for (const object of store.list(resourceOfKind('CertificateSigningRequest'))) {
      const { certificate, conditions = [] } = (object['status'] ?? {}) as SigningStatus;
      if (certificate !== undefined || conditions.some(({ type }) => type !== 'Approved')) continue;
      const answered = this.answered(object);
      if (answered !== object) store.put(answered);
    }
  }

  private answered(object: ApiObject): ApiObject {
    const spec = object['spec'] as SigningSpec;
    const condition = (type: string, message: string): object => ({
      type,
      status: 'True',
      reason: 'TestSays',
      message,
    });
    const approved = condition('Approved', 'may be');
    switch (this.policy) {
      case 'wait':
        return object;
      case 'approve':
        return { ...object, status: { conditions: [approved] } };
      case 'deny':
        return { ...object, status: { conditions: [condition('Denied', 'not this node')] } };
      case 'fail':
        return { ...object, status: { conditions: [approved, condition('Failed', 'not signed')] } };
      case 'sign':
      case 'otherKey':
        return { ...object, status: { conditions: [approved], certificate: this.sign(spec) } };
    }
  }

  private sign({ request }: SigningSpec): string {
    if (this.authority === null) return '';
    const pem = Buffer.from(request, 'base64').toString();
    const isOther = this.policy === 'otherKey';
    return Buffer.from(signRequest(this.authority, isOther ? null : pem, this.seconds)).toString('base64');
  }
}
