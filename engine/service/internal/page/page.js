// SPDX-License-Identifier: Apache-2.0
'use strict';
(() => {
  const one = (selector) => document.querySelector(selector);
  const every = (selector) => Array.from(document.querySelectorAll(selector));
  const make = (tag, className, text) => {
    const e = document.createElement(tag);
    e.className = className || '';
    e.textContent = text || ''; // names and problems are text, whatever is in them
    return e;
  };
  const button = (text, act) => {
    const b = make('button', '', text);
    b.type = 'button';
    b.addEventListener('click', act);
    return b;
  };
  const said = one('#said'), start = one('#start'), work = one('#work'), view = one('#view'), bar = one('#bar'), keep = one('#keep');
  const say = (text) => { said.textContent = text; };
  const most = Number(document.body.dataset.most);

  const bytes = (n) => {
    const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
    let at = 0;
    while (n >= 1000 && at < units.length - 1) {
      n /= 1000;
      at++;
    }
    return `${at === 0 ? n : n.toFixed(n < 10 ? 1 : 0)} ${units[at]}`;
  };

  // What is kept in the browser: the token for as long as the tab is open, and which
  // reports this browser had kept. A browser may refuse to keep anything.
  const stored = (storage, name) => {
    try {
      return storage().getItem(name);
    } catch {
      return null;
    }
  };
  const store = (storage, name, value) => {
    try {
      storage().setItem(name, value);
    } catch { /* it is not kept */ }
  };
  const tab = () => sessionStorage, browser = () => localStorage;
  let token = stored(tab, 'unwindd.token') || '';

  // ask makes a request. The answer has a status, 0 where there is none, and a blob.
  const ask = (method, url, body, on = {}) => {
    const xhr = new XMLHttpRequest();
    const answer = new Promise((resolve) => {
      xhr.open(method, url);
      xhr.responseType = 'blob';
      if (token) {
        xhr.setRequestHeader('Authorization', `Bearer ${token}`);
      }
      if (on.sent) {
        xhr.upload.addEventListener('progress', (event) => on.sent(event.loaded, event.total));
        xhr.upload.addEventListener('load', () => on.sent(1, 1));
      }
      if (on.came) {
        xhr.addEventListener('progress', (event) => on.came(event.loaded));
      }
      xhr.addEventListener('load', () => resolve({ status: xhr.status, blob: xhr.response, type: xhr.getResponseHeader('Content-Type') || '' }));
      xhr.addEventListener('error', () => resolve({ status: 0 }));
      xhr.addEventListener('abort', () => resolve({ status: 0, isCanceled: true }));
      xhr.send(body);
    });
    return { answer, cancel: () => xhr.abort() };
  };

  // problemOf is a problem in words (RFC 9457).
  const problemOf = async (answer) => {
    if (answer.status === 0) {
      return { title: 'There is no answer', detail: 'The file could not be read, or the connection to the server ended.' };
    }
    const text = await answer.blob.text();
    try {
      if (answer.type.startsWith('application/problem+json')) {
        const p = JSON.parse(text);
        return { title: String(p.title), detail: String(p.detail), request: p.request ? String(p.request) : '' };
      }
    } catch { /* it is shown as it is */ }
    return { title: `The server answers with status ${answer.status}`, detail: text.slice(0, 1000) };
  };

  // Who asks: the token is asked for where the server wants one.
  const tokenForm = one('#token'), secret = one('#secret'), refused = one('#refused');
  let onToken = [];
  const wantToken = (why) => {
    tokenForm.hidden = false;
    work.hidden = true;
    start.hidden = false;
    refused.textContent = why;
    say(why || 'This server asks for a token.');
    secret.focus();
    return new Promise((resolve) => onToken.push(resolve));
  };
  tokenForm.addEventListener('submit', async (event) => {
    event.preventDefault();
    token = secret.value.trim();
    if (!/^[\x21-\x7e]+$/.test(token)) {
      refused.textContent = 'A token has no blanks, and no letters with accents.';
      return;
    }
    const answer = await ask('GET', '/v1/problems/unauthenticated').answer;
    if (answer.status !== 200) {
      const p = await problemOf(answer);
      refused.textContent = `${p.title}: ${p.detail}`;
      say(refused.textContent);
      token = '';
      return;
    }
    store(tab, 'unwindd.token', token);
    secret.value = '';
    tokenForm.hidden = true;
    work.hidden = false;
    say('');
    one('#files').focus();
    onToken.splice(0).forEach((resolve) => resolve());
  });
  // withToken asks, and asks again once there is a token, where one is wanted.
  const withToken = async (request) => {
    for (let answer = await request(); ; answer = await request()) {
      if (answer.status !== 401) {
        return answer;
      }
      await wantToken(token ? (await problemOf(answer)).detail : '');
    }
  };

  // The reports that this browser had kept, the newest first.
  const isID = (id) => /^[A-Z2-7]{26}$/.test(id);
  const keptReports = () => {
    try {
      const list = JSON.parse(stored(browser, 'unwindd.reports'));
      return Array.isArray(list) ? list.filter((r) => r && isID(r.id) && typeof r.name === 'string' && !isNaN(Date.parse(r.date))).slice(0, 200) : [];
    } catch {
      return [];
    }
  };
  const remember = (list) => {
    store(browser, 'unwindd.reports', JSON.stringify(list.slice(0, 200)));
    listKept();
  };
  const pathOf = (id) => `/reports/${id}`;
  const forget = async (report, row) => {
    const answer = await withToken(() => ask('DELETE', pathOf(report.id)).answer);
    if (answer.status !== 204 && answer.status !== 404) {
      const p = await problemOf(answer);
      row.lastElementChild.textContent = `${p.title}: ${p.detail}`;
      return say(row.lastElementChild.textContent);
    }
    remember(keptReports().filter((r) => r.id !== report.id));
    say(`The report of ${report.name} is removed from the server.`);
    (one('#kept a') || one('#files')).focus();
  };
  const listKept = () => {
    const list = keptReports();
    one('#keptPart').hidden = list.length === 0;
    one('#kept').replaceChildren(...list.map((report) => {
      const row = make('li');
      const link = make('a', 'name', report.name);
      link.href = pathOf(report.id);
      link.addEventListener('click', (event) => {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0) {
          event.preventDefault();
          openKept(report.id, report.name, true);
        }
      });
      const when = make('span', 'f', new Date(report.date).toLocaleString());
      const name = make('span', '');
      name.append(link, ' ', when);
      const buttons = make('span', 'buttons');
      const remove = button('Remove', () => forget(report, row));
      remove.setAttribute('aria-label', `Remove the report of ${report.name} from the server`);
      buttons.append(remove);
      row.append(name, buttons, make('span', 'state'));
      return row;
    }));
  };

  // A report is shown in a frame that is nobody's origin: it reaches nothing of this page,
  // and its script is let in by the policy of the page because it is that of reports.
  const tooLong = 256e6; // bytes; a browser shows no page of more
  let open = null, cameFrom = null;
  const show = async (report, isNew) => {
    open = report;
    cameFrom = document.activeElement;
    one('#shown').textContent = report.name;
    document.title = `${report.name} - unwindd`;
    one('#link').hidden = !report.id;
    if (isNew) {
      history.pushState({ id: report.id || '' }, '', report.id ? pathOf(report.id) : '#report');
    }
    const isPage = report.blob.type.startsWith('text/html');
    if (report.blob.size > tooLong || !isPage) {
      const why = isPage ? `has ${bytes(report.blob.size)}, which is more than is shown here` : `is no page: it is of type ${report.blob.type}`;
      view.replaceChildren(make('p', 'only', `The report ${why}. It can be saved.`));
    } else {
      const frame = document.createElement('iframe');
      frame.setAttribute('sandbox', 'allow-scripts');
      frame.title = `Report of ${report.name}`;
      frame.srcdoc = await report.blob.text();
      view.replaceChildren(frame);
      frame.addEventListener('load', () => frame.focus());
    }
    start.hidden = true;
    view.hidden = bar.hidden = false;
    one('#theme').hidden = true; // the report has its own
  };
  const close = () => {
    if (!open) {
      return;
    }
    open = null;
    view.replaceChildren();
    view.hidden = bar.hidden = true;
    start.hidden = one('#theme').hidden = false;
    one('#shown').textContent = '';
    document.title = 'unwindd';
    (cameFrom && cameFrom.isConnected && cameFrom !== document.body ? cameFrom : one('#files')).focus();
  };
  const openKept = async (id, name, isNew) => {
    say(`Getting the report of ${name}.`);
    const answer = await withToken(() => ask('GET', pathOf(id)).answer);
    if (answer.status === 200) {
      say(`The report of ${name} is open.`);
      return show({ id, name, blob: answer.blob }, isNew);
    }
    const p = await problemOf(answer);
    const row = addRow(name, 0);
    row.fail(p);
    if (!isNew) {
      history.replaceState(null, '', '/');
    }
    start.hidden = false;
  };
  const goBack = () => {
    if (history.state) {
      history.back();
    } else {
      history.replaceState(null, '', '/');
      close();
    }
  };
  one('#back').addEventListener('click', goBack);
  one('#save').addEventListener('click', () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(open.blob);
    const ending = ['html', 'json'].find((name) => open.blob.type.includes(name)) || 'txt';
    link.download = `${open.name}.${ending}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  });
  one('#link').addEventListener('click', async () => {
    const link = one('#link'), address = location.origin + pathOf(open.id);
    try {
      await navigator.clipboard.writeText(address);
      link.textContent = 'Copied';
    } catch {
      prompt('The link to the report:', address); // no clipboard without TLS
    }
    setTimeout(() => { link.textContent = 'Copy link'; }, 1500);
  });
  addEventListener('popstate', () => {
    const id = location.pathname.replace('/reports/', '');
    if (isID(id)) {
      openKept(id, (keptReports().find((r) => r.id === id) || { name: 'a report' }).name, false);
    } else {
      close();
    }
  });

  // A row is a file that is sent, waits to be, or was.
  const addRow = (name, size) => {
    const row = make('li');
    const title = make('span', 'name', name);
    if (size) {
      title.append(make('span', 'f', bytes(size)));
    }
    const buttons = make('span', 'buttons'), progress = document.createElement('progress'), state = make('span', 'state');
    progress.setAttribute('aria-label', `Progress of ${name}`);
    progress.hidden = true;
    row.append(title, buttons, progress, state);
    one('#sent').append(row);
    one('#sentPart').hidden = false;
    return {
      element: row,
      // set says how far it is: part is a share, or null where nobody knows one.
      set(text, part) {
        state.textContent = text;
        progress.hidden = part === undefined;
        if (part === null) {
          progress.removeAttribute('value');
        } else if (part !== undefined) {
          progress.value = part;
        }
      },
      offer(...list) {
        const hadFocus = buttons.contains(document.activeElement);
        buttons.replaceChildren(...list);
        if (hadFocus && list.length > 0) {
          list[0].focus();
        }
      },
      fail(p) {
        row.className = 'failed';
        this.set('');
        state.replaceChildren(make('b', '', p.title), `: ${p.detail}`);
        if (p.request) {
          state.append(make('span', 'f', `\nThe server's log has it as request ${p.request}.`));
        }
        say(`${name}: ${p.title}: ${p.detail}`);
      },
    };
  };

  // Files are sent one after the other, in the order in which they came.
  const waiting = [];
  let current = null;
  const parametersOf = (kind) => {
    const list = new URLSearchParams({ format: 'html' });
    every(`[data-of=${kind}]`).forEach((input) => {
      const name = input.dataset.name, text = input.value.trim();
      if (input.type === 'checkbox') {
        input.checked && list.append(name, 'true');
      } else if ('list' in input.dataset) {
        text.split(/\s+/).filter(Boolean).forEach((part) => list.append(name, part));
      } else if (text) {
        list.append(name, text);
      }
    });
    return list;
  };
  // Recordings of perf begin so, those of machines of the other byte order in reverse.
  const isRecording = async (file) => ['PERFILE2', '2ELIFREP'].includes(await file.slice(0, 8).text());

  const add = (files) => {
    for (const file of files) {
      const job = { file, row: addRow(file.name, file.size) };
      job.row.set('It waits for those before it.');
      enqueue(job);
    }
  };
  const enqueue = (job) => {
    job.isCanceled = false;
    job.row.element.className = '';
    job.row.offer(button('Cancel', () => cancel(job)));
    waiting.push(job);
    next();
  };
  const cancel = (job) => {
    job.isCanceled = true;
    if (job === current && job.request) {
      return job.request.cancel();
    }
    const at = waiting.indexOf(job);
    if (at >= 0) {
      waiting.splice(at, 1);
      end(job, { title: 'Canceled', detail: 'The file was not sent.' });
    }
  };
  const end = (job, problem) => {
    job.row.fail(problem);
    job.row.offer(button('Try again', () => enqueue(job)));
  };
  const next = async () => {
    if (current || waiting.length === 0) {
      return;
    }
    current = waiting.shift();
    const job = current;
    try {
      await send(job);
    } catch (error) {
      end(job, { title: 'The browser could not do it', detail: String(error.message || error) });
    }
    current = null;
    next();
  };

  const send = async (job) => {
    const { file, row } = job;
    if (file.size > most) {
      return end(job, { title: 'Too much to send', detail: `The file has ${bytes(file.size)}, expected at most ${bytes(most)}. A snapshot of a core is small: unwindd snapshot makes one.` });
    }
    let kind;
    try {
      kind = await isRecording(file) ? 'profile' : 'stack';
    } catch {
      return end(job, { title: 'The browser cannot read it', detail: 'Expected a file, not a folder, that is still there.' });
    }
    const isKept = keep && keep.checked;
    const parameters = parametersOf(kind);
    parameters.set('name', file.name);
    say(`${file.name} is sent.`);
    const timer = { at: 0, every: 0 };
    const request = () => {
      row.set('0% sent', 0);
      job.request = ask('POST', `${isKept ? '/v1/reports' : '/v1'}/${kind}?${parameters}`, file, {
        sent: (done, all) => {
          if (done < all) {
            return row.set(`${Math.floor(100 * done / all)}% sent: ${bytes(done)} of ${bytes(all)}`, done / all);
          }
          if (!timer.at) {
            timer.at = Date.now();
            say(`${file.name} is sent. The server works on it.`);
            const tell = () => row.set(`The server works on it: ${Math.floor((Date.now() - timer.at) / 1000)} s`, null);
            timer.every = setInterval(tell, 1000);
            tell();
          }
        },
        came: (loaded) => {
          if (!isKept) {
            clearInterval(timer.every);
            row.set(`The report comes: ${bytes(loaded)}`, null);
          }
        },
      });
      return job.request.answer.finally(() => {
        clearInterval(timer.every);
        timer.at = 0;
      });
    };
    const answer = await withToken(request);
    job.request = null;
    if (answer.isCanceled) {
      return end(job, { title: 'Canceled', detail: 'Nobody waits for the report any more.' });
    }
    if (answer.status !== 200 && answer.status !== 201) {
      return end(job, await problemOf(answer));
    }
    const report = { name: file.name, blob: answer.blob };
    if (isKept) {
      const kept = JSON.parse(await answer.blob.text());
      report.id = kept.id;
      remember([{ id: kept.id, name: file.name, date: new Date().toISOString() }, ...keptReports()]);
    }
    finish(job, report, kind);
  };

  const finish = (job, report, kind) => {
    const what = kind === 'profile' ? 'flame graph' : 'stacks';
    const openIt = () => report.id ? openKept(report.id, report.name, true) : show(report, true);
    const opener = button(`Open the ${what}`, openIt);
    opener.setAttribute('aria-label', `Open the ${what} of ${report.name}`);
    job.row.offer(opener);
    job.row.set(report.id ? 'The report is kept on the server.' : `The report is here, ${bytes(report.blob.size)}, and nowhere else: it is gone with this page.`);
    say(`The report of ${report.name} is ready.`);
    if (waiting.length === 0 && one('#sent').children.length === 1 && !open) {
      opener.focus();
      openIt(); // it is the only one
    }
  };

  // Files are dropped anywhere, or picked.
  const drop = one('#drop'), input = one('#files');
  input.addEventListener('change', () => {
    add(Array.from(input.files));
    input.value = '';
  });
  const isOfFiles = (event) => Array.from(event.dataTransfer.types).includes('Files');
  addEventListener('dragover', (event) => {
    if (isOfFiles(event)) {
      event.preventDefault();
      drop.classList.add('over');
    }
  });
  addEventListener('dragleave', (event) => {
    if (!event.relatedTarget) {
      drop.classList.remove('over');
    }
  });
  addEventListener('drop', (event) => {
    if (!isOfFiles(event)) {
      return;
    }
    event.preventDefault();
    drop.classList.remove('over');
    if (!work.hidden) {
      add(Array.from(event.dataTransfer.files));
    }
  });
  one('#wanted').addEventListener('submit', (event) => event.preventDefault());
  addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') {
      return;
    }
    if (open) {
      goBack();
    } else if (current) {
      cancel(current);
    }
  });
  addEventListener('beforeunload', (event) => {
    if (current) {
      event.preventDefault(); // a file is under way
    }
  });

  listKept();
  const linked = location.pathname.replace('/reports/', '');
  if (isID(linked)) {
    openKept(linked, 'a report', false); // the server wants to know first who asks
  } else {
    start.hidden = false;
    if ('token' in document.body.dataset && !token) {
      wantToken('');
    }
  }
})();
