import { render } from 'preact';
import './styles/main.css';
import { chosenTheme, showTheme } from './theme.js';
import { NodesPage } from './views/nodes.js';

showTheme(chosenTheme());
const page = document.getElementById('page');
if (page === null) throw new Error('nodes.html has no #page');
render(<NodesPage />, page);
