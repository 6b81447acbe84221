import { render } from 'preact';
import { App } from './app.js';
import './styles/main.css';
import { chosenTheme, showTheme } from './theme.js';

showTheme(chosenTheme());
const page = document.getElementById('page');
if (page === null) throw new Error('index.html has no #page');
render(<App />, page);
