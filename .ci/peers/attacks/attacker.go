// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// kind is a kind of attack.
type kind struct {
	name, does string
	group      string // of those that -quick runs at once
	// prepare makes what run sends; nil: nothing. It takes its time before the attack.
	prepare func()
	// run attacks until the context ends. The error is a thing that the server did and must
	// not: that it refuses, closes or does not answer is its right.
	run func(context.Context, *attacker) error
}

// attacker is the process that attacks.
type attacker struct {
	address string   // HOST:PORT of the server
	unwindd string   // the executable
	tokens  []string // that let it in
	left    atomic.Int64
}

// Variables by which the process of attacks knows the server.
const (
	addressVariable = "ATTACKS_ADDRESS"
	tokensVariable  = "ATTACKS_TOKENS"
	timeVariable    = "ATTACKS_TIME"
	unwinddVariable = "ATTACKS_UNWINDD"
)

// mostBytes is how much all attacks of a process send together, at most.
const mostBytes = 8 << 30

// start starts a process that runs attacks, and waits until it begins.
func (r *rig) start(ctx context.Context, chosen []*kind, address string, d time.Duration) (*exec.Cmd, *strings.Builder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, a := range chosen {
		names = append(names, a.name)
	}
	cmd := exec.CommandContext(ctx, self, "-attack", strings.Join(names, ","))
	cmd.Env = append(os.Environ(), addressVariable+"="+address, tokensVariable+"="+strings.Join(attackersTokens, ","), timeVariable+"="+d.String(), unwinddVariable+"="+r.unwindd)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said := &strings.Builder{}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1)) // it begins
	}
	return cmd, said, err
}

// beAttacker runs attacks at once.
func beAttacker(names string) error {
	d, err := time.ParseDuration(os.Getenv(timeVariable))
	if err != nil {
		return err
	}
	var chosen []*kind
	for _, k := range attacks {
		if strings.Contains(","+names+",", ","+k.name+",") {
			chosen = append(chosen, k)
			if k.prepare != nil {
				k.prepare()
			}
		}
	}
	if err := yield(); err != nil {
		return err
	}
	fmt.Println("begins")
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	a := &attacker{address: os.Getenv(addressVariable), unwindd: os.Getenv(unwinddVariable), tokens: strings.Split(os.Getenv(tokensVariable), ",")}
	a.left.Store(mostBytes)
	errs := make([]error, len(chosen))
	var all sync.WaitGroup
	for i, k := range chosen {
		all.Go(func() {
			if err := k.run(ctx, a); err != nil {
				errs[i] = fmt.Errorf("%s: %w", k.name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// yield has this process give way to all others: an attacker has processors of its own. The
// kernel keeps this for each thread, and a new one has it of the one that starts it.
func yield() error {
	threads, err := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		var id int
		if _, err := fmt.Sscan(t.Name(), &id); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, 19) // it may have ended
		}
	}
	return err
}

// token is one of the attacker's.
func (a *attacker) token() string { return a.tokens[0] }

// head begins a request of HTTP/1.1.
func (a *attacker) head(method, path, more string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s", method, path, a.token(), more)
}

// bounded is a connection that sends no more than is left, and knows when the attack ends.
type bounded struct {
	net.Conn
	a *attacker
}

// errSpent is the error of an attack that has sent what it may.
var errSpent = errors.New("the attack has sent all it may")

func (b *bounded) Write(p []byte) (int, error) {
	if b.a.left.Add(-int64(len(p))) < 0 {
		return 0, errSpent
	}
	return b.Conn.Write(p)
}

// dial opens a connection, which is closed when the attack ends. It comes from another address than
// the honest caller's.
func (a *attacker) dial(ctx context.Context) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: 2 * time.Second, LocalAddr: &net.TCPAddr{IP: elsewhere()}}).DialContext(ctx, "tcp", a.address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = c.Close() })
	return &bounded{c, a}, nil
}

// elsewhere is an address of this machine that is none of its loopback, so that a server takes it
// for another machine's. Packets from it to the loopback stay on the machine.
var elsewhere = sync.OnceValue(func() net.IP {
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			return n.IP
		}
	}
	return net.IPv4(127, 0, 0, 2) // a machine without a network
})

// client asks by HTTP, with a token.
func (a *attacker) client(token string) *http.Client {
	return &http.Client{Transport: &withToken{token, &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return a.dial(ctx) }}}}
}

type withToken struct {
	token string
	*http.Transport
}

func (t *withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.token)
	return t.Transport.RoundTrip(r)
}

// ask sends a request, and drops the answer.
func (a *attacker) ask(ctx context.Context, c *http.Client, method, path string, body io.Reader) (status int) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+a.address+path, body)
	if err != nil {
		return 0
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// many runs a thing in many goroutines, again and again until the attack ends. Where it fails
// it is tried again a moment later.
func many(ctx context.Context, n int, do func(ctx context.Context, i int) error) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := do(ctx, i); errors.Is(err, errSpent) {
					return
				} else if err != nil {
					pause(ctx, 100*time.Millisecond)
				}
			}
		})
	}
	all.Wait()
}

// pause waits, for no longer than the attack takes.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
