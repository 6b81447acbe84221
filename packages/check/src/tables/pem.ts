import { rule } from '../../../../src/config/tables/rules.js';
import type { Rule } from '../../../../src/config/tables/types.js';

const BLOCKS = {
  certificate: /-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/,
  'private key': /-----BEGIN (?:[A-Z0-9]{1,20} )?PRIVATE KEY-----\s[^-]+-----END (?:[A-Z0-9]{1,20} )?PRIVATE KEY-----/,
};

/** A field that holds certificates or a key in PEM. @param form how the text stands in it. */
export function pem(name: string, holds: keyof typeof BLOCKS, form: 'text' | 'base64'): Rule {
  return rule('pem', (section) => {
    const written = section.text(name);
    const text = form === 'text' ? written : Buffer.from(written, 'base64').toString('utf8');
    if (written !== '' && !BLOCKS[holds].test(text))
      section.refuse('pem', name, `has no ${holds}`, form === 'text' ? 'PEM' : 'PEM, in base64');
  });
}
