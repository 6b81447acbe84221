import { pathToFileURL } from 'node:url';
import { printableLine } from '../../../src/base/printable.js';
import { printYaml } from '../../../src/base/print-yaml.js';
import { OWN_VERSION } from '../../../src/config/version.js';
import { printReport } from '../../../src/config/tables/report.js';
import { outerFile, printFinding, type Finding } from './findings.js';

export const OUTPUTS = ['text', 'json', 'yaml', 'sarif'] as const;
export type OutputFormat = (typeof OUTPUTS)[number];

/** Findings as a command prints them. */
export function printFindings(findings: readonly Finding[], format: OutputFormat): string {
  switch (format) {
    case 'text':
      return findings.map((finding) => `${printableLine(printFinding(finding))}\n`).join('');
    case 'json':
      return `${JSON.stringify({ findings }, null, 2)}\n`;
    case 'yaml':
      return printYaml({ findings });
    case 'sarif':
      return `${JSON.stringify(sarif(findings), null, 2)}\n`;
  }
}

/** As a log of the Static Analysis Results Interchange Format, version 2.1.0. */
function sarif(findings: readonly Finding[]): object {
  const rules = [...new Set(findings.map(({ rule }) => rule))].sort();
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'pointsman',
            semanticVersion: OWN_VERSION,
            rules: rules.map((id) => ({ id })),
          },
        },
        results: findings.map((finding) => ({
          ruleId: finding.rule,
          ruleIndex: rules.indexOf(finding.rule),
          level: finding.severity,
          message: { text: plainMessage(printReport(finding)) },
          locations: [
            {
              physicalLocation: {
                artifactLocation: { uri: uriOf(outerFile(finding.file)) },
                ...regionOf(finding),
              },
              logicalLocations: [{ fullyQualifiedName: logicalName(finding) }],
            },
          ],
        })),
      },
    ],
  };
}

/**
 * A message without placeholders and links: checked files have no say in where a viewer leads. Braces are doubled (SARIF 2.1.0, 3.11.5). Brackets stay as
 * they are where they cannot make a link, as in paths of fields, because few viewers take backslashes away.
 */
function plainMessage(text: string): string {
  const withoutLinks = text.includes('](') ? text.replace(/[\\[\]]/g, '\\$&') : text;
  return withoutLinks.replace(/[{}]/g, '$&$&');
}

/** The line of a held file is none of the file around it. */
function regionOf({ file, line }: Finding): object {
  return line === null || outerFile(file) !== file ? {} : { region: { startLine: line } };
}

/** Relative paths stay so: the viewer of the report knows where they begin. */
function uriOf(file: string): string {
  return file.startsWith('/') ? pathToFileURL(file).href : file.split('/').map(encodeURIComponent).join('/');
}

function logicalName({ file, document, path }: Finding): string {
  const within = file.slice(outerFile(file).length).replace(/^, /, '');
  return [within, document === null ? '' : `document ${document}`, path].filter((part) => part !== '').join(': ');
}
