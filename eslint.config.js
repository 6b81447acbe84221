import { builtinRules } from 'eslint/use-at-your-own-risk';
import tseslint from 'typescript-eslint';

/** ESLint knows one severity of a rule: a long file is warned of by one name, and refused by the other. */
const limits = { rules: { 'max-lines': builtinRules.get('max-lines') } };

export default tseslint.config(
  { ignores: ['node_modules', 'build', 'prebuilds', 'build-windows', 'dist', '.build', '.tap'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        project: ['./test/tsconfig.json', './packages/page/browser/tsconfig.json'],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    plugins: { limits },
    rules: {
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/prefer-readonly': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // Nobody declares an enum here, and the search for their types takes an eighth of the time of all rules.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      'no-console': 'error',
      'no-restricted-syntax': [
        'error',
        {
          selector: 'ObjectExpression > SpreadElement > ObjectExpression',
          message: 'Name the properties in the object itself.',
        },
      ],
      'max-lines': ['warn', 400],
      'limits/max-lines': ['error', 600],
      eqeqeq: 'error',
    },
  },
  {
    // A function fits a screen.
    files: ['src/**/*.ts', 'packages/*/src/**', 'packages/page/browser/**', 'bench/**', 'bundle/**', 'demo/**'],
    rules: { 'max-lines-per-function': ['error', { max: 55, skipComments: true }] },
  },
  // tap's assertions return promises only for subtests, which a test file awaits by being a module.
  {
    files: ['test/**/*.ts', 'packages/*/test/**'],
    rules: { '@typescript-eslint/no-floating-promises': 'off', '@typescript-eslint/no-non-null-assertion': 'off' },
  },
  {
    files: ['**/*.js', '**/*.mjs', '**/*.cjs'],
    extends: [tseslint.configs.disableTypeChecked],
    rules: {
      'no-console': 'off',
      '@typescript-eslint/explicit-module-boundary-types': 'off',
      '@typescript-eslint/no-require-imports': 'off',
    },
  },
);
