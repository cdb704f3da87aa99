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
  const plural = (n, name) => `${n} ${name}${n === 1 ? '' : 's'}`;
  const said = one('#said'), start = one('#start'), work = one('#work'), view = one('#view'), bar = one('#bar'), keep = one('#keep'), onState = one('#state');
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
  const hints = /<section class="hints">[^]*?<\/section>/; // of the command line, where the page's own are shown
  const tooLong = 256e6; // bytes; a browser shows no page of more
  let open = null, cameFrom = null;
  const show = async (report, isNew) => {
    open = report;
    cameFrom = document.activeElement;
    one('#shown').textContent = report.name;
    document.title = `${report.name} - unwindd`;
    one('#link').hidden = !report.id;
    tellMissing();
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
      const text = await report.blob.text();
      frame.srcdoc = report.job && report.job.isTold ? text.replace(hints, '') : text;
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
    tellMissing();
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
    const buttons = make('span', 'buttons'), progress = document.createElement('progress'), state = make('span', 'state'), missing = make('ul', 'missing');
    progress.setAttribute('aria-label', `Progress of ${name}`);
    progress.hidden = true;
    missing.hidden = true;
    row.append(title, buttons, progress, state, missing);
    one('#sent').append(row);
    one('#sentPart').hidden = false;
    return {
      element: row,
      // set says how far it is: part is a share, or null where nobody knows one.
      set(text, part) {
        state.textContent = text;
        onState.textContent = part === undefined ? '' : text;
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
      misses(list) {
        missing.replaceChildren(...list.map((text) => make('li', '', text)));
        missing.hidden = list.length === 0;
      },
      fail(p) {
        row.className = 'failed';
        this.misses([]);
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
  // kindOf is how a file is sent, by how it begins. Recordings of perf of machines of the other byte
  // order begin in reverse. An ELF file that is no core, and a PE file, is code or debug information.
  const codeTypes = [1, 2, 3]; // of e_type: ET_REL, ET_EXEC, ET_DYN
  const kindOf = async (file) => {
    const head = new Uint8Array(await file.slice(0, 18).arrayBuffer());
    const text = String.fromCharCode(...head);
    if (['PERFILE2', '2ELIFREP'].includes(text.slice(0, 8))) {
      return 'profile';
    }
    const type = head[5] === 1 ? head[16] + 256 * head[17] : head[17] + 256 * head[16];
    return text.startsWith('MZ') || text.startsWith('\x7fELF') && codeTypes.includes(type) ? 'object' : 'stack';
  };

  const jobs = [];
  const add = async (files) => {
    const added = files.map((file) => ({ file, kind: '', row: addRow(file.name, file.size), missing: [], isTold: false }));
    added.forEach((job) => job.row.set('It waits for those before it.'));
    jobs.push(...added);
    for (const job of added) {
      try {
        job.kind = await kindOf(job.file);
        enqueue(job);
      } catch {
        end(job, { title: 'The browser cannot read it', detail: 'Expected a file, not a folder, that is still there.' });
      }
    }
    next();
  };
  // Executables and debug files go first: what waits behind them may be missing them.
  const enqueue = (job) => {
    job.isCanceled = false;
    job.row.element.className = '';
    job.row.set('It waits for those before it.');
    job.row.misses([]);
    job.row.offer(button('Cancel', () => cancel(job)));
    const at = job.kind === 'object' ? waiting.findIndex((other) => other.kind !== 'object') : -1;
    waiting.splice(at < 0 ? waiting.length : at, 0, job);
  };
  const again = (job) => {
    enqueue(job);
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
    job.row.offer(button('Try again', () => again(job)));
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
    const { file } = job;
    if (file.size > most) {
      const instead = job.kind === 'stack' ? ' A snapshot of a core is small: unwindd snapshot makes one.' : '';
      return end(job, { title: 'Too much to send', detail: `The file has ${bytes(file.size)}, expected at most ${bytes(most)}.${instead}` });
    }
    return job.kind === 'object' ? sendObject(job) : sendTarget(job);
  };

  // upload sends a job's file, and says how far it is; hasReport: the answer is the report.
  const upload = async (job, url, hasReport) => {
    const { file, row } = job;
    say(`${file.name} is sent.`);
    const timer = { at: 0, every: 0 };
    const request = () => {
      row.set('0% sent', 0);
      job.request = ask('POST', url, file, {
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
          if (hasReport) {
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
      end(job, { title: 'Canceled', detail: 'Nobody waits for the answer any more.' });
      return null;
    }
    if (answer.status !== 200 && answer.status !== 201) {
      end(job, await problemOf(answer));
      return null;
    }
    return answer;
  };

  const sendTarget = async (job) => {
    const { file, kind } = job;
    const isKept = keep && keep.checked;
    const parameters = parametersOf(kind);
    parameters.set('name', file.name);
    const answer = await upload(job, `${isKept ? '/v1/reports' : '/v1'}/${kind}?${parameters}`, !isKept);
    if (!answer) {
      return;
    }
    const report = { name: file.name, blob: answer.blob, job };
    if (isKept) {
      const kept = JSON.parse(await answer.blob.text());
      report.id = kept.id;
      remember([{ id: kept.id, name: file.name, date: new Date().toISOString() }, ...keptReports()]);
      report.blob = (await withToken(() => ask('GET', pathOf(kept.id)).answer)).blob;
    }
    const missing = kind === 'stack' ? await missingOf(report.blob) : [];
    job.missing = missing.filter((m) => m.path);
    job.isTold = missing.length > 0 && job.missing.length === missing.length;
    finish(job, report);
  };

  const finish = (job, report) => {
    const what = job.kind === 'profile' ? 'flame graph' : 'stacks';
    const openIt = () => show(report, true);
    const opener = button(`Open the ${what}`, openIt), repeat = button('Do it again', () => again(job));
    opener.setAttribute('aria-label', `Open the ${what} of ${report.name}`);
    repeat.setAttribute('aria-label', `Do ${report.name} again`);
    job.row.offer(opener, repeat);
    job.row.set(report.id ? 'The report is kept on the server.' : `The report is here, ${bytes(report.blob.size)}, and nowhere else: it is gone with this page.`);
    job.row.misses(missingTexts(job));
    say([`The report of ${report.name} is ready.`, ...missingTexts(job).slice(0, 1)].join(' '));
    if (open && open.job === job) {
      return show(report, false).then(() => report.id && history.replaceState({ id: report.id }, '', pathOf(report.id)));
    }
    const isOnly = jobs.filter((other) => other.kind !== 'object').length === 1;
    if (waiting.length === 0 && isOnly && !open) {
      opener.focus();
      openIt();
    }
  };

  // What a report misses, it has in attributes: modules without a file, or without names.
  const mostRead = 64e6; // bytes of a report that is searched
  const missingOf = async (blob) => {
    if (!blob || blob.size > mostRead || !blob.type.startsWith('text/html')) {
      return [];
    }
    const doc = new DOMParser().parseFromString(await blob.text(), 'text/html'); // which runs nothing
    return Array.from(doc.querySelectorAll('[data-needs]'), (e) => ({ needs: e.dataset.needs, path: e.dataset.module || '', id: e.dataset.buildId || '' }));
  };
  const baseName = (path) => path.replace(/ \(deleted\)$/, '').split(/[\\/]/).pop();
  const gains = { file: 'to have names', names: 'to have names', rows: 'to have callers that are no guesses', lines: 'to have lines' };
  const mostNamed = 3;
  // missingTexts say what to do about a job's missing files.
  const missingTexts = (job) => {
    const list = job.missing.slice(0, mostNamed).map(({ needs, path, id }) => id ?
      `Drop ${path} here, too, ${gains[needs] || 'to know more'} (build ID ${id}).` :
      `${path} has no build ID, by which files are found here. Run unwindd stack CORE FILE where both files are.`);
    const more = job.missing.length - list.length;
    return more > 0 ? [...list, `${plural(more, 'module')} more ${more === 1 ? 'lacks' : 'lack'} something.`] : list;
  };
  // tellMissing says it above the report that is open.
  const tellMissing = () => {
    const texts = open && open.job ? missingTexts(open.job) : [];
    one('#wants').hidden = texts.length === 0;
    one('#wanted-files').replaceChildren(...texts.slice(0, 1).map((text) => make('span', '', text)));
  };

  const sendObject = async (job) => {
    const { file, row } = job;
    const answer = await upload(job, `/v1/objects?${new URLSearchParams({ name: file.name })}`, false);
    if (!answer) {
      return;
    }
    const object = JSON.parse(await answer.blob.text()), id = String(object.build_id);
    const has = [object.executable && 'code', object.debuginfo && 'debug information'].filter(Boolean).join(' and ');
    const waitsFor = jobs.filter((other) => other.missing.some((m) => m.id === id) && !waiting.includes(other));
    waitsFor.forEach(enqueue);
    // A file of the right name may be of another build.
    const missed = jobs.flatMap((other) => other.missing), name = file.name.replace(/\.debug$/, '');
    const other = waitsFor.length === 0 && missed.find((m) => m.id && m.id !== id && baseName(m.path) === name);
    row.offer();
    row.set(`The server keeps its ${has}, by build ID ${id}.`);
    row.misses(other ? [`It is another build than the one that is missing, which has build ID ${other.id}.`] : []);
    say([`${file.name} is kept.`, ...waitsFor.map((job) => `${job.file.name} is done again.`)].join(' '));
  };

  // Files are dropped anywhere, or picked.
  const drop = one('#drop'), input = one('#files'), over = one('#over');
  const take = (files) => {
    if (open) {
      stayIfObjects(files);
    }
    add(files);
  };
  // A report stays open for what it is missing; for others the list is shown.
  const stayIfObjects = async (files) => {
    const kinds = await Promise.all(files.map((file) => kindOf(file).catch(() => '')));
    if (open && !(open.job && kinds.every((kind) => kind === 'object'))) {
      goBack();
    }
  };
  input.addEventListener('change', () => {
    take(Array.from(input.files));
    input.value = '';
  });
  one('#choose').addEventListener('click', () => input.click());
  const isOfFiles = (event) => Array.from(event.dataTransfer.types).includes('Files');
  addEventListener('dragover', (event) => {
    if (isOfFiles(event)) {
      event.preventDefault();
      drop.classList.add('over');
      over.hidden = !open;
    }
  });
  addEventListener('dragleave', (event) => {
    if (!event.relatedTarget) {
      drop.classList.remove('over');
      over.hidden = true;
    }
  });
  over.addEventListener('pointermove', () => { over.hidden = true; }); // none comes while files are dragged
  // A report tells that files are dragged over it: what covers it then takes them. That is all that
  // it can tell.
  addEventListener('message', (event) => {
    const frame = view.querySelector('iframe');
    if (frame && event.source === frame.contentWindow && event.data === 'unwindd: files') {
      over.hidden = !open;
    }
  });
  addEventListener('drop', (event) => {
    if (!isOfFiles(event)) {
      return;
    }
    event.preventDefault();
    drop.classList.remove('over');
    over.hidden = true;
    if (!work.hidden) {
      take(Array.from(event.dataTransfer.files));
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
