// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The fleet has a queue with the permissions of docs/fleet.md, a worker of one job at a time, and
// two users who may only submit: the honest one and the attacker.

// queue is the server and the worker of a fleet.
type queue struct {
	dir     string
	command *exec.Cmd
	address string
	users   []user // with restricted permissions: the honest one, the attacker
	worker  user
}

type user struct{ name, password string }

func (q *queue) url(u user) string { return "nats://" + u.name + ":" + u.password + "@" + q.address }

var (
	documentedQueue = regexp.MustCompile("(?s)```conf\n# queue.conf\n(.*?)```")
	documentedTLS   = regexp.MustCompile(`(?s)tls \{.*?\n\}\n`)
	documentedUser  = regexp.MustCompile(`\{ *user: "?([\w-]+)"?, *password: "([^"]+)"(, *permissions:)?`)
)

// settings returns the settings of the document, at another address and without TLS.
func (q *queue) settings() (string, error) {
	text, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		return "", err
	}
	found := documentedQueue.FindStringSubmatch(string(text))
	if found == nil {
		return "", errors.New("docs/fleet.md has no queue.conf")
	}
	conf := documentedTLS.ReplaceAllString(found[1], "")
	for _, change := range [][2]string{{`"0.0.0.0:4222"`, `"` + q.address + `"`}, {"/var/lib/unwindd/queue", filepath.Join(q.dir, "store")}, {"64G", "6G"}, {"32G", "2500M"}, {"24G", "1G"}} {
		conf = strings.ReplaceAll(conf, change[0], change[1])
	}
	lines := documentedUser.FindAllStringSubmatch(conf, -1)
	for _, m := range lines {
		u := user{m[1], m[2]}
		switch {
		case m[3] != "" && len(q.users) < 2:
			q.users = append(q.users, u)
		case m[3] == "" && q.worker.name == "":
			q.worker = u
		}
	}
	if len(q.users) < 2 || q.worker.name == "" {
		return "", fmt.Errorf("docs/fleet.md: expected two users with permissions and one without, found %q", lines)
	}
	return conf, nil
}

// newQueue starts a worker that has the queue. Without workers it only keeps jobs.
func (r *rig) newQueue(workers int) (q *queue, err error) {
	q = &queue{}
	if q.dir, err = os.MkdirTemp("", "attacks-"); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	q.address = l.Addr().String()
	_ = l.Close()
	conf, err := q.settings()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(q.dir, "queue.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(r.dir, fmt.Sprintf("fleet-%d.log", workers)))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	q.command = exec.Command(r.unwindd, "worker", "--queue-config", file, "--queue-size", "256M", "--workers", fmt.Sprint(workers), "--state", filepath.Join(q.dir, "state"))
	q.command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + q.dir, "TMPDIR=" + q.dir, "XDG_RUNTIME_DIR=" + q.dir, "XDG_CACHE_HOME=" + q.dir}
	q.command.Stderr = log
	q.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := q.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := q.command.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%s: %w\n%s", q.command, q.command.Wait(), text)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return q, nil
}

// end ends the fleet, and removes what it has.
func (q *queue) end() error {
	_ = q.command.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { _ = q.command.Process.Kill() })
	defer kill.Stop()
	return errors.Join(q.command.Wait(), os.RemoveAll(q.dir))
}

// caller runs the command in a folder, as a user of the queue.
func (r *rig) caller(ctx context.Context, dir string, q *queue, u user, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, r.unwindd, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "XDG_CONFIG_HOME=" + r.dir, "UNWINDD_QUEUE=" + q.url(u)}
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s%s", err, out, failed.Stderr)
	}
	return string(out), err
}

// errand is a core of the honest user: the file with its executable, and the right answer.
type errand struct {
	dir      string // that has the files `core` and `server`
	id       string // of the job
	inputSum string // SHA-256 of the core
	buildID  string
	right    string
}

// args are the arguments of a command for the core.
func (e *errand) args(command string, more ...string) []string {
	return append([]string{command, "core", "--exe", "server", "--crashed", "--top", "3"}, more...)
}

// errand makes the n-th core, which has a build ID of its own. twin is a queue without workers,
// which tells its ID.
func (r *rig) errand(twin *queue, n uint64) (*errand, error) {
	dir := filepath.Join(r.dir, fmt.Sprint("errand-", n))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	exe, id := withBuildID(example("crash", "server"), n)
	core, _ := withBuildID(example("crash", "server.core"), n)
	if n%2 == 1 { // one is in its message, and the other is not
		core += string(make([]byte, 512<<10))
	}
	e := &errand{dir: dir, buildID: id}
	sum := sha256.Sum256([]byte(core))
	e.inputSum = hex.EncodeToString(sum[:])
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "core"), []byte(core), 0o600), os.WriteFile(filepath.Join(dir, "server"), []byte(exe), 0o700)); err != nil { //nolint:gosec // an executable
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), honestPatience)
	defer cancel()
	var err error
	if e.right, err = r.caller(ctx, dir, twin, twin.users[0], e.args("stack")...); err != nil {
		return nil, err
	}
	out, err := r.caller(ctx, dir, twin, twin.users[0], e.args("submit")...)
	if err != nil {
		return nil, err
	}
	e.id, _, _ = strings.Cut(out, " ")
	return e, nil
}

// errandIsRight has the honest user submit the core, and compares what comes.
func (r *rig) errandIsRight(q *queue, e *errand) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*honestPatience)
	defer cancel()
	out, err := r.caller(ctx, e.dir, q, q.users[0], e.args("submit", "--wait")...)
	if err == nil && out != e.right {
		err = fmt.Errorf("another report than the command's: %.300q", out)
	}
	return err
}

// intruder is the attacker's connection, and a view of all streams by a user who is trusted.
type intruder struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	streams []*jetstream.StreamInfo
}

func intrude(q *queue) (*intruder, error) {
	trusted, err := nats.Connect(q.url(q.worker))
	if err != nil {
		return nil, err
	}
	defer trusted.Close()
	js, err := jetstream.New(trusted)
	if err != nil {
		return nil, err
	}
	i := &intruder{}
	list := js.ListStreams(context.Background())
	for s := range list.Info() {
		i.streams = append(i.streams, s)
	}
	if i.conn, err = nats.Connect(q.url(q.users[1]), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})); err != nil {
		return nil, err
	}
	i.js, err = jetstream.New(i.conn, jetstream.WithDefaultTimeout(500*time.Millisecond))
	return i, errors.Join(err, list.Err())
}

// jobSubjects are the subjects that a job with an ID can have.
func (i *intruder) jobSubjects(id string) (list []string) {
	for _, s := range i.streams {
		for _, subject := range s.Config.Subjects {
			if strings.Contains(subject, ".job.") || strings.Contains(subject, ".result.") {
				words := strings.Split(subject, ".")
				for k, w := range words {
					if w == "*" || w == ">" {
						words[k] = id
					}
				}
				list = append(list, strings.Join(words, "."))
			}
		}
	}
	return list
}

// poison publishes messages that are no jobs, and jobs that have expired, under the ID of another's.
func (i *intruder) poison(e *errand) {
	expired := fmt.Sprintf(`{"version":1,"kind":"stack","options":{},"input":%q,"size":0,"deadline":"2001-01-01T00:00:00Z","submitted":"2001-01-01T00:00:00Z"}`, e.inputSum)
	forged := fmt.Sprintf(`{"version":1,"id":%q,"state":"done","kind":"stack","size":6,"tries":1,"ended":"2001-01-01T00:00:00Z"}`, e.id)
	message := func(text, data string) []byte {
		return append([]byte{0, 0, byte(len(text) >> 8), byte(len(text))}, text+data...)
	}
	for _, subject := range i.jobSubjects(e.id) {
		for _, b := range [][]byte{[]byte("garbage"), message(expired, ""), message(forged, "forged")} {
			_ = i.conn.Publish(subject, b)
		}
	}
	for _, subject := range []string{"unwindd.done.v1." + e.id, "unwindd.cancel.v1." + e.id} {
		_ = i.conn.Publish(subject, message(forged, "forged"))
	}
	_ = i.conn.Flush()
}

// poisonObjects puts other files under the names of another's.
func (i *intruder) poisonObjects(e *errand) {
	wrong := []byte("this is another file")
	for _, s := range i.streams {
		bucket, ok := strings.CutPrefix(s.Config.Name, "OBJ_")
		if !ok {
			continue
		}
		one, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		if store, err := i.js.ObjectStore(one, bucket); err == nil {
			for _, name := range []string{e.inputSum, e.buildID + ".executable", e.buildID + ".debuginfo"} {
				_, _ = store.Put(one, jetstream.ObjectMeta{Name: name}, bytes.NewReader(wrong))
			}
		}
		cancel()
	}
}

// purge asks for all that removes, reads or changes the streams of others, and returns those requests
// that were fulfilled.
func (i *intruder) purge(q *queue) (done []string) {
	own := q.users[1].name
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, s := range i.streams {
		name := s.Config.Name
		if strings.Contains(name, strings.ToUpper(own)) || strings.Contains(name, "_"+own) {
			continue
		}
		for verb, body := range map[string]string{
			"STREAM.PURGE." + name: "", "STREAM.DELETE." + name: "", "STREAM.MSG.DELETE." + name: `{"seq":1}`, "STREAM.MSG.GET." + name: `{"seq":1}`, "DIRECT.GET." + name: `{"seq":1}`,
			"CONSUMER.CREATE." + name: fmt.Sprintf(`{"stream_name":%q,"config":{"deliver_policy":"all","ack_policy":"none"}}`, name),
			"STREAM.INFO." + name:     `{"subjects_filter":">"}`,
		} {
			all.Go(func() {
				m, err := i.conn.Request("$JS.API."+verb, []byte(body), time.Second)
				if err == nil && !bytes.Contains(m.Data, []byte(`"error"`)) && m.Header.Get("Status") == "" {
					mu.Lock()
					defer mu.Unlock()
					done = append(done, verb)
				}
			})
		}
	}
	all.Wait()
	return done
}

// sniff listens to all that it may, and returns how many messages have a part of the honest
// user's core.
func (i *intruder) sniff(q *queue) (stop func() []string, err error) {
	heard := make(chan *nats.Msg, 1<<16)
	for _, subject := range []string{">", "_INBOX.>", "_INBOX_" + q.users[0].name + ".>", "_INBOX." + q.users[0].name + ".>", "unwindd.>", "$JS.>", "$O.>", "$KV.>", "unwindd.done.v1.*"} {
		_, _ = i.conn.ChanSubscribe(subject, heard) // it may be refused
	}
	if err := i.conn.Flush(); err != nil {
		return nil, err
	}
	return func() (list []string) {
		time.Sleep(200 * time.Millisecond)
		for len(heard) > 0 {
			if m := <-heard; bytes.Contains(m.Data, []byte("\x7fELF")) || bytes.Contains(m.Data, []byte("content_length")) {
				list = append(list, fmt.Sprintf("%s (%d bytes)", m.Subject, len(m.Data)))
			}
		}
		return list
	}, nil
}

// bomb submits many jobs, by raw messages and as a user of the command.
func (r *rig) bomb(ctx context.Context, i *intruder, q *queue) {
	for n := range 20_000 {
		input := fmt.Sprint("no core ", n)
		sum := sha256.Sum256([]byte(input))
		name := hex.EncodeToString(sum[:])
		own := sha256.Sum256([]byte("1 stack " + name + " {}"))
		text := fmt.Sprintf(`{"version":1,"kind":"stack","options":{},"input":%q,"size":%d,"submitted":"2026-01-01T00:00:00Z"}`, name, len(input))
		for _, subject := range i.jobSubjects(hex.EncodeToString(own[:16]))[:1] {
			_ = i.conn.Publish(subject, append([]byte{0, 0, byte(len(text) >> 8), byte(len(text))}, text+input...))
		}
	}
	_ = i.conn.Publish("unwindd.wake.v1", nil)
	_ = i.conn.Flush()
	dir := filepath.Join(r.dir, "bomb")
	_ = os.MkdirAll(dir, 0o700)
	for n := range 60 {
		_ = os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), append(packed(core(20_000, true)), byte(n), byte(n>>8)), 0o600)
	}
	_, _ = r.caller(ctx, dir, q, q.users[1], "submit", ".", "--priority", "high")
}

// fleet attacks a fleet as a user who may submit.
func (r *rig) fleet() (failed error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	twin, err := r.newQueue(0)
	if err != nil {
		return err
	}
	defer func() { _ = twin.end() }()
	q, err := r.newQueue(1)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, q.end()) }()
	first, err := r.errand(twin, 0)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := r.errandIsRight(q, first); err != nil {
		return fmt.Errorf("a fleet that is not attacked: %w", err)
	}
	alone := time.Since(began)
	// The attacker is a user as others, whose streams are there before.
	_, _ = r.caller(context.Background(), ".", q, q.users[1], "submit", filepath.Join("../../examples", "mixed", "mixed.snapshot"), "--wait")
	i, err := intrude(q)
	if err != nil {
		return err
	}
	defer i.conn.Close()
	for n, a := range r.fleetAttacks(i, q) {
		e, err := r.errand(twin, uint64(n+1)) //nolint:gosec // few
		if err != nil {
			return err
		}
		began := time.Now()
		err = a.run(e)
		decision := "held"
		if err != nil {
			decision = "SUCCEEDS"
			failed = errors.Join(failed, fmt.Errorf("fleet-%s succeeds", a.name))
		}
		fmt.Printf("%-20s %s\n  %v; a job alone %v\n", "fleet-"+a.name, decision, time.Since(began).Round(time.Millisecond), alone.Round(time.Millisecond))
		if err != nil {
			fmt.Printf("  %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
		}
	}
	return failed
}

// fleetAttack is an attack beside which the honest user submits a core.
type fleetAttack struct {
	name string
	run  func(*errand) error
}

func (r *rig) fleetAttacks(i *intruder, q *queue) []fleetAttack {
	return []fleetAttack{
		{"sniff", func(e *errand) error {
			stop, err := i.sniff(q)
			if err != nil {
				return err
			}
			err = r.errandIsRight(q, e)
			if heard := stop(); len(heard) > 0 {
				err = errors.Join(err, fmt.Errorf("%d messages of another user are heard, with his core or his report: %s", len(heard), heard[0]))
			}
			return err
		}},
		{"poison", func(e *errand) error {
			i.poison(e)
			time.Sleep(500 * time.Millisecond) // until all messages were handled
			return r.errandIsRight(q, e)
		}},
		{"objects", func(e *errand) error {
			i.poisonObjects(e)
			return r.errandIsRight(q, e)
		}},
		{"read-and-remove", func(e *errand) error {
			out, err := r.caller(context.Background(), e.dir, q, q.users[0], e.args("submit")...)
			if err != nil {
				return err
			}
			var errs []error
			if done := i.purge(q); len(done) > 0 {
				errs = append(errs, fmt.Errorf("another user's are reached: %s", strings.Join(done, ", ")))
			}
			id, _, _ := strings.Cut(out, " ")
			for _, args := range [][]string{{"results"}, {"results", id}, {"results", "--cancel", id}} {
				if text, err := r.caller(context.Background(), e.dir, q, q.users[1], args...); args[len(args)-1] == "results" && err == nil && strings.Contains(text, id) || strings.Contains(text, "content_length") {
					errs = append(errs, fmt.Errorf("%v: %.200q", args, text))
				}
			}
			return errors.Join(append(errs, r.errandIsRight(q, e))...)
		}},
		{"bomb", func(e *errand) error {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			r.bomb(ctx, i, q)
			began := time.Now()
			err := r.errandIsRight(q, e)
			if took := time.Since(began); err == nil && took > bombPatience {
				err = fmt.Errorf("the job took %v behind those of another user, expected at most %v", took.Round(time.Millisecond), bombPatience)
			}
			return err
		}},
	}
}

// bombPatience is how long a job may take beside thousands of another user: one of those that are
// under way, which take seconds, and its own.
const bombPatience = 15 * time.Second
