// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// Browser is headless Chromium with one page, driven by its DevTools protocol on a
// pipe.
type Browser struct {
	t       testing.TB
	to      io.Writer
	session string
	last    int // the number of the last command

	mu      sync.Mutex
	answers map[int]chan json.RawMessage
	said    []string
	loaded  chan struct{}

	choosing chan int // the input of a dialog for files that was to be opened
}

// browserMessage is a message of the protocol: the response to a command, or an
// event.
type browserMessage struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// browserPatience bounds the time of a command, on a busy machine.
const browserPatience = 2 * time.Minute

// Browse opens an address in headless Chromium, and returns when it was loaded. Flags
// are more of Chromium's.
func Browse(t testing.TB, url string, flags ...string) *Browser {
	t.Helper()
	Tools(t, "chromium")
	commands, to := pipe(t)
	from, events := pipe(t)
	cmd := exec.Command("chromium", append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--window-size=1400,1000", "--user-data-dir=" + t.TempDir(), "--remote-debugging-pipe",
	}, flags...)...)
	cmd.SysProcAttr = ownGroup() // its children write into its folder until they are gone
	cmd.ExtraFiles = []*os.File{commands, events}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = commands.Close()
	_ = events.Close()
	b := &Browser{t: t, to: to, answers: map[int]chan json.RawMessage{}, loaded: make(chan struct{}, 1), choosing: make(chan int, 1)}
	ended := make(chan struct{})
	go func() {
		b.read(from)
		close(ended) // the browser and its children have closed the pipe
	}()
	t.Cleanup(func() {
		_, _ = to.WriteString(`{"id":0,"method":"Browser.close"}` + "\x00")
		select {
		case <-ended:
		case <-time.After(browserPatience):
		}
		killGroup(cmd.Process)
		_ = cmd.Wait()
	})
	var target struct{ TargetID, SessionID string }
	b.into(&target, "Target.createTarget", map[string]any{"url": "about:blank"})
	b.into(&target, "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "DOM"} {
		b.into(nil, domain+".enable", nil)
	}
	b.Go(url)
	return b
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Close()
		_ = w.Close()
	})
	return r, w
}

// read takes the messages of the browser, each of which ends with a zero byte.
func (b *Browser) read(from io.Reader) {
	for r := bufio.NewReader(from); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m browserMessage
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		switch answer := b.answers[m.ID]; {
		case answer != nil && m.Error != nil:
			answer <- json.RawMessage(`{"exceptionDetails":` + string(m.Error) + `}`)
		case answer != nil:
			answer <- m.Result
		case m.Method == "Page.loadEventFired":
			select {
			case b.loaded <- struct{}{}:
			default:
			}
		case m.Method == "Page.fileChooserOpened":
			var dialog struct{ BackendNodeID int }
			if json.Unmarshal(m.Params, &dialog) == nil {
				select {
				case b.choosing <- dialog.BackendNodeID:
				default:
				}
			}
		case m.Method == "Network.requestWillBeSent", m.Method == "Runtime.exceptionThrown", m.Method == "Runtime.consoleAPICalled", m.Method == "Log.entryAdded":
			b.said = append(b.said, m.Method+" "+string(m.Params))
		}
		b.mu.Unlock()
	}
}

// into sends a command, and reads its result.
func (b *Browser) into(result any, method string, params map[string]any) {
	b.t.Helper()
	b.last++
	message := map[string]any{"id": b.last, "method": method, "params": params}
	if params == nil {
		message["params"] = map[string]any{}
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		b.t.Fatal(err)
	}
	answer := make(chan json.RawMessage, 1)
	b.mu.Lock()
	b.answers[b.last] = answer
	b.mu.Unlock()
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatalf("chromium: %s: %v", method, err)
	}
	select {
	case got := <-answer:
		var failed struct{ ExceptionDetails json.RawMessage }
		if json.Unmarshal(got, &failed) == nil && failed.ExceptionDetails != nil {
			b.t.Fatalf("chromium: %s %v: %s", method, params, failed.ExceptionDetails)
		}
		if result != nil {
			if err := json.Unmarshal(got, result); err != nil {
				b.t.Fatal(err)
			}
		}
	case <-time.After(browserPatience):
		b.t.Fatalf("chromium: %s: no answer", method)
	}
}

// Eval reads the value of an expression of JavaScript in the page, a promise's included.
func (b *Browser) Eval(result any, expression string) {
	b.t.Helper()
	got := struct{ Result struct{ Value any } }{}
	got.Result.Value = result
	b.into(&got, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
}

// Press presses keys: characters, or the names of keys such as Enter.
func (b *Browser) Press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		down := map[string]any{"type": "keyDown", "key": key}
		switch {
		case key == "Enter":
			down["text"], down["windowsVirtualKeyCode"] = "\r", 13
		case key == "Tab":
			down["code"], down["windowsVirtualKeyCode"] = "Tab", 9
		case key == " ":
			down["text"], down["code"], down["windowsVirtualKeyCode"] = " ", "Space", 32
		case len(key) == 1:
			down["text"] = key
		}
		b.into(nil, "Input.dispatchKeyEvent", down)
		up := map[string]any{"type": "keyUp", "key": key}
		if code := down["windowsVirtualKeyCode"]; code != nil {
			up["windowsVirtualKeyCode"] = code
		}
		b.into(nil, "Input.dispatchKeyEvent", up)
	}
}

// Drop drops files on the element of a selector, as a user who drags them there.
func (b *Browser) Drop(selector string, files ...string) {
	b.t.Helper()
	var at struct{ X, Y float64 }
	b.Eval(&at, `(r => ({X: r.left + r.width / 2, Y: r.top + r.height / 2}))(document.querySelector('`+selector+`').getBoundingClientRect())`)
	for _, kind := range []string{"dragEnter", "dragOver", "drop"} {
		b.into(nil, "Input.dispatchDragEvent", map[string]any{
			"type": kind, "x": at.X, "y": at.Y,
			"data": map[string]any{"items": []any{}, "files": files, "dragOperationsMask": 1},
		})
	}
}

// Choose picks files in the dialog that open makes the page open.
func (b *Browser) Choose(open func(), files ...string) {
	b.t.Helper()
	b.into(nil, "Page.setInterceptFileChooserDialog", map[string]any{"enabled": true})
	open()
	select {
	case node := <-b.choosing:
		b.into(nil, "DOM.setFileInputFiles", map[string]any{"files": files, "backendNodeId": node})
	case <-time.After(browserPatience):
		b.t.Fatal("chromium: no dialog for files was opened")
	}
	b.into(nil, "Page.setInterceptFileChooserDialog", map[string]any{"enabled": false})
}

// Click clicks on the middle of the element of a selector.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	var at struct{ X, Y float64 }
	b.Eval(&at, `(e => { e.scrollIntoView({block: 'nearest'}); const r = e.getBoundingClientRect(); return {X: r.left + r.width / 2, Y: r.top + r.height / 2}; })(document.querySelector('`+selector+`'))`)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.into(nil, "Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
	}
}

// Resize makes the window of a size, in CSS pixels.
func (b *Browser) Resize(width, height int) {
	b.t.Helper()
	b.into(nil, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
}

// Go goes to an address, and returns when it was loaded.
func (b *Browser) Go(url string) {
	b.t.Helper()
	select {
	case <-b.loaded:
	default:
	}
	b.into(nil, "Page.navigate", map[string]any{"url": url})
	select {
	case <-b.loaded:
	case <-time.After(browserPatience):
		b.t.Fatalf("chromium did not load %s", url)
	}
}

// Media shows the page for a medium, "screen" or "print", in a colour scheme, "light" or
// "dark".
func (b *Browser) Media(medium, scheme string) {
	b.t.Helper()
	b.into(nil, "Emulation.setEmulatedMedia", map[string]any{
		"media": medium, "features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}},
	})
}

// Screenshot returns the content of the window as PNG.
func (b *Browser) Screenshot() []byte {
	b.t.Helper()
	var shot struct{ Data string }
	b.into(&shot, "Page.captureScreenshot", map[string]any{"format": "png"})
	image, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return image
}

// Said returns the console's messages up to now, errors of scripts and of the page's
// policy included, and every request except those to the opened address.
func (b *Browser) Said(opened string) (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.said {
		if !strings.Contains(line, fmt.Sprintf(`"url":%q,"method"`, opened)) {
			list = append(list, line)
		}
	}
	return list
}
