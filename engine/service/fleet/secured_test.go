// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// An authority signs certificates for a test.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir string) *authority {
	t.Helper()
	a := &authority{dir: dir}
	a.cert, a.key = a.sign(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign writes NAME.pem and NAME.key.
func (a *authority) sign(t *testing.T, name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	a.write(t, name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k}))
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

func (a *authority) write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// documented is a file of settings of docs/fleet.md, by the comment in its first line.
func documented(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```conf\n# " + regexp.QuoteMeta(name) + "\n(.*?)```").FindStringSubmatch(string(text))
	if found == nil {
		t.Fatalf("docs/fleet.md has no settings called %s", name)
	}
	return found[1]
}

// forTest makes settings of the document smaller, with their files in a folder.
func forTest(dir, text string) string {
	for _, change := range [][2]string{{`"0.0.0.0:4222"`, `"127.0.0.1:-1"`}, {"/etc/unwindd/", dir + "/"}, {"/var/lib/unwindd/queue", filepath.Join(dir, "store")}, {"64G", "2G"}, {"24G", "1G"}, {"32G", "1G"}} {
		text = strings.ReplaceAll(text, change[0], change[1])
	}
	return text
}

// withSettings starts a server with settings, which are written into a folder.
func withSettings(t *testing.T, dir, text string) Server {
	t.Helper()
	config := filepath.Join(dir, "queue.conf")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := start(ServerOptions{Dir: dir, Config: config, Log: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// connectAs connects as options say, to a server of a test.
func connectAs(t *testing.T, o Options) (*Queue, error) {
	t.Helper()
	o.Keep, o.Patience = Keep{Bytes: 128 << 20}, 5*time.Second
	q, err := Connect(t.Context(), o)
	if err == nil {
		t.Cleanup(q.Close)
	}
	return q, err
}

func mustConnect(t *testing.T, o Options) *Queue {
	t.Helper()
	q, err := connectAs(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// A documentedQueue is a queue with the settings of the document, and a worker.
type documentedQueue struct {
	authority *authority
	server    Server
	worker    *Queue
	doer      *doer
	stop      func() // the worker
}

func startDocumented(t *testing.T) *documentedQueue {
	t.Helper()
	dir := t.TempDir()
	d := &documentedQueue{authority: newAuthority(t, dir), doer: newDoer()}
	d.authority.sign(t, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	d.authority.sign(t, "client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	d.server = withSettings(t, dir, forTest(dir, documented(t, "queue.conf")))
	d.worker = mustConnect(t, d.as("worker:secret-of-workers"))
	_, d.stop = work(t, d.worker, d.doer, 1)
	return d
}

// as has the options of a user.
func (d *documentedQueue) as(user string) Options {
	a := d.authority
	return Options{URL: "tls://" + user + "@" + d.server.Address(), CA: a.file("ca.pem"), Certificate: a.file("client.pem"), Key: a.file("client.key")}
}

func (d *documentedQueue) alice(t *testing.T) *Queue {
	t.Helper()
	return mustConnect(t, d.as("alice:secret-of-alice"))
}

func (d *documentedQueue) bob(t *testing.T) *Queue {
	t.Helper()
	return mustConnect(t, d.as("bob:secret-of-bob"))
}

// The settings of the document: TLS with certificates of both sides, two teams, and users that
// may only submit.
func TestDocumentedSettings(t *testing.T) {
	d := startDocumented(t)
	own := mustConnect(t, Options{Server: d.server}) // the worker that has the queue
	alice := d.alice(t)
	large := strings.Repeat("large input ", 1<<17)
	var ids []string
	for _, text := range []string{"", "small", "!large", large} {
		ids = append(ids, submit(t, alice, text, How{}).ID)
	}
	if sent, err := alice.PutObject(t.Context(), []byte("0123456789"), "executable", strings.NewReader("code")); err != nil || !sent {
		t.Errorf("a file of code: %t, %v", sent, err)
	}
	if sent, err := alice.PutObject(t.Context(), []byte("0123456789"), "executable", strings.NewReader("code")); err != nil || sent {
		t.Errorf("a file of code once more: %t, %v", sent, err)
	}
	results := wait(t, alice, ids...)
	for i, want := range []string{"", "SMALL", strings.Repeat("0123456789abcdef", 1<<16), strings.ToUpper(large)} {
		if got := report(t, alice, results[ids[i]]); got != want {
			t.Errorf("a report of %d bytes, expected %d", len(got), len(want))
		}
	}
	if s := submit(t, alice, large, How{}); !s.HasResult {
		t.Errorf("a job that was done: %+v", s)
	}
	if s := submit(t, alice, large, How{Again: true}); s.Known {
		t.Errorf("a job that is wanted again: %+v", s)
	}
	var listed []string
	if err := alice.Results(t.Context(), func(r *Result) error { listed = append(listed, r.ID); return nil }); err != nil || len(listed) < 3 {
		t.Errorf("%d results are listed: %v", len(listed), err)
	}
	if _, err := own.Result(t.Context(), ids[1]); !errors.Is(err, ErrNoResult) {
		t.Errorf("the account's own queue has a user's result: %v", err)
	}
	other := mustConnect(t, d.as("other-worker:secret-of-others"))
	if _, err := other.Result(t.Context(), ids[1]); !errors.Is(err, ErrNoResult) {
		t.Errorf("another account sees the result: %v", err)
	}
	if s := submit(t, other, "small", How{}); s.Known {
		t.Errorf("another account knows the job: %+v", s)
	}
	connectionsRefused(t, d.authority, d.server, d.as)
}

// connectionsRefused has those connect who may not.
func connectionsRefused(t *testing.T, a *authority, e Server, as func(string) Options) {
	t.Helper()
	stranger := newAuthority(t, t.TempDir())
	stranger.sign(t, "client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	for name, c := range map[string]struct {
		change func(*Options)
		words  string
	}{
		"a wrong password":      {func(o *Options) { *o = as("worker:guessed") }, "the queue refuses this user"},
		"no user":               {func(o *Options) { o.URL = "tls://" + e.Address() }, "the queue refuses this user"},
		"no certificate":        {func(o *Options) { o.Certificate, o.Key = "", "" }, "tls"},
		"a stranger's":          {func(o *Options) { o.Certificate, o.Key = stranger.file("client.pem"), stranger.file("client.key") }, "tls"},
		"an unknown authority":  {func(o *Options) { o.CA = stranger.file("ca.pem") }, "unknown authority"},
		"a file that is absent": {func(o *Options) { o.CA = a.file("none.pem") }, "none.pem"},
	} {
		o := as("worker:secret-of-workers")
		c.change(&o)
		_, err := connectAs(t, o)
		if err == nil || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "secret-of") || strings.Contains(err.Error(), "guessed") {
			t.Errorf("%s: %v, expected %q", name, err, c.words)
		}
	}
}

// A signer is an operator of NATS, whose account has a queue.
type signer struct {
	account nkeys.KeyPair
	config  string
}

func newSigner(t *testing.T, dir string) *signer {
	t.Helper()
	made := func(k nkeys.KeyPair, err error) nkeys.KeyPair {
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	public := func(k nkeys.KeyPair) string {
		p, err := k.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	s := &signer{account: made(nkeys.CreateAccount())}
	operator, system := made(nkeys.CreateOperator()), made(nkeys.CreateAccount())
	encode := func(c jwt.Claims) string {
		text, err := c.Encode(operator)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	o := jwt.NewOperatorClaims(public(operator))
	o.SystemAccount = public(system)
	team := jwt.NewAccountClaims(public(s.account))
	team.Limits.DiskStorage, team.Limits.Streams, team.Limits.Consumer = 1<<30, jwt.NoLimit, jwt.NoLimit
	s.config = fmt.Sprintf("listen: \"127.0.0.1:-1\"\njetstream { store_dir: %q, max_file_store: 2G }\noperator: %s\nresolver: MEMORY\nresolver_preload { %s: %s, %s: %s }\n",
		filepath.Join(dir, "store"), encode(o), public(s.account), encode(team), public(system), encode(jwt.NewAccountClaims(public(system))))
	return s
}

// user writes the credentials of a user, which are valid for a while.
func (s *signer) user(t *testing.T, path string, valid time.Duration, more ...func(*jwt.UserClaims)) string {
	t.Helper()
	k, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ := k.PublicKey()
	seed, _ := k.Seed()
	c := jwt.NewUserClaims(public)
	c.Expires = time.Now().Add(valid).Unix()
	for _, set := range more {
		set(c)
	}
	text, err := c.Encode(s.account)
	if err != nil {
		t.Fatal(err)
	}
	file, err := jwt.FormatUserConfig(text, seed)
	if err == nil {
		err = os.WriteFile(path, file, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCredentialsOfAnOperator(t *testing.T) {
	dir := t.TempDir()
	s := newSigner(t, dir)
	e := withSettings(t, dir, s.config)
	own := s.user(t, filepath.Join(dir, "own.creds"), time.Hour)
	worker := mustConnect(t, Options{Server: e, Credentials: own})
	work(t, worker, newDoer(), 1)
	q := mustConnect(t, Options{URL: "nats://" + e.Address(), Credentials: s.user(t, filepath.Join(dir, "user.creds"), time.Hour)})
	id := submit(t, q, "small", How{}).ID
	if got := report(t, q, wait(t, q, id)[id]); got != "SMALL" {
		t.Errorf("%q", got)
	}
	ann := s.user(t, filepath.Join(dir, "ann.creds"), time.Hour, func(c *jwt.UserClaims) {
		c.Name = "ann@example.org"
		c.Pub.Allow.Add("unwindd.ask.v1.ann_40example_2eorg.*")
		c.Sub.Allow.Add("_INBOX_ann_40example_2eorg.>", "unwindd.user.ann_40example_2eorg.done.v1.*")
	})
	q = mustConnect(t, Options{URL: "nats://" + e.Address(), Credentials: ann})
	id = submit(t, q, "hers", How{}).ID
	if got := report(t, q, wait(t, q, id)[id]); got != "HERS" || q.desk == nil {
		t.Errorf("%q", got)
	}
	for name, path := range map[string]string{
		"another operator's": newSigner(t, t.TempDir()).user(t, filepath.Join(dir, "stranger.creds"), time.Hour),
		"expired ones":       s.user(t, filepath.Join(dir, "old.creds"), -time.Hour),
		"none":               "",
	} {
		if _, err := connectAs(t, Options{URL: "nats://" + e.Address(), Credentials: path}); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, expected %v", name, err, ErrRefused)
		}
	}
}

func TestAQuotaOfAnAccount(t *testing.T) {
	dir := t.TempDir()
	e := withSettings(t, dir, fmt.Sprintf(`listen: "127.0.0.1:-1"
jetstream { store_dir: %q, max_file_store: 1G }
accounts { TEAM: { jetstream { max_file: 64M }, users: [ { user: u, password: p } ] } }
`, filepath.Join(dir, "store")))
	if _, err := Connect(t.Context(), Options{URL: "nats://u:p@" + e.Address(), Keep: Keep{Bytes: 512 << 20}}); !errors.Is(err, ErrFull) {
		t.Errorf("a queue that is larger than the account may have: %v", err)
	}
	q, err := Connect(t.Context(), Options{URL: "nats://u:p@" + e.Address(), Keep: Keep{Bytes: 32 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	task, err := NewTask("stack", &pb.StackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		input := strings.NewReader(fmt.Sprint(i) + strings.Repeat("x", 200<<10))
		if _, err = q.Submit(t.Context(), task, input, How{}); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("%v, expected %v", err, ErrFull)
	}
}

// Results are kept for as long as was said; then the job may be asked for again.
func TestResultsAreKeptForATime(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q, err := Connect(t.Context(), Options{URL: ReadAddress(dir), Keep: Keep{Bytes: 1 << 30, Time: 2 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	d := newDoer()
	work(t, q, d, 1)
	id := submit(t, q, "small", How{}).ID
	wait(t, q, id)
	until(t, "the result is gone", func() bool {
		_, err := q.Result(t.Context(), id)
		return errors.Is(err, ErrNoResult)
	})
	if s := submit(t, q, "small", How{}); s.Known || s.ID != id {
		t.Errorf("%+v, expected a new job", s)
	}
	wait(t, q, id)
	if n := d.times("small"); n != 2 {
		t.Errorf("done %d times", n)
	}
}

func TestVersionsOfServers(t *testing.T) {
	for version, words := range map[string]string{
		"2.9.0": "", "2.9.10": "", "2.15.2": "", "3.0.0": "", "2.12.0-RC.1": "",
		"2.8.4": "nats-server 2.8.4, expected 2.9.0 or later", "1.4.1": "expected 2.9.0", "": "expected one of nats-server", "x": "expected one",
	} {
		err := checkVersion(version)
		if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v, expected %q", version, err, words)
		}
	}
}

func TestSettingsWithManyAccounts(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "c")
	text := "listen: \"127.0.0.1:-1\"\naccounts { A: { users: [ { user: a, password: p } ] }, B: { users: [ { user: b, password: p } ] } }\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := start(ServerOptions{Dir: dir, Config: config}); err == nil || !strings.Contains(err.Error(), "UNWINDD") {
		t.Errorf("%v", err)
	}
}
