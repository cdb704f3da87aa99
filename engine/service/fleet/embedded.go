// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// EmbeddedOptions say what a server in this process is.
type EmbeddedOptions struct {
	// Dir is the folder in which it keeps everything.
	Dir string
	// Listen is HOST:PORT of this machine, at which other processes reach it with the token
	// of the file that AddressFile names. It is of no meaning with Config.
	Listen string
	// Config is a file of settings of nats-server: accounts, TLS, a cluster, other limits.
	// "": none.
	Config string
	// MaxStore is how many bytes it may keep; 0: what the disk has room for.
	MaxStore int64
	// Log takes its warnings and errors; nil: nobody does.
	Log func(text string)
}

// An Embedded is a server of NATS in this process.
type Embedded struct {
	server *server.Server
	self   nats.Option // by which this process asks; nil: as the settings say
}

// AddressFile is the file in a server's folder that has its URL, with a token: who can read
// it reaches the server.
func AddressFile(dir string) string { return filepath.Join(dir, "address") }

// startPatience is how long a server may take to read what it has kept.
const startPatience = 60 * time.Second

// Embed starts a server. What one before it has kept in the folder is there again.
func Embed(o EmbeddedOptions) (*Embedded, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	s, err := o.settings()
	if err != nil {
		return nil, err
	}
	e := &Embedded{}
	if e.self, err = o.admit(s); err != nil {
		return nil, err
	}
	if e.server, err = server.NewServer(s); err != nil {
		return nil, fmt.Errorf("the queue's server: %w", err)
	}
	e.server.SetLoggerV2(natsLog{o.Log}, false, false, false)
	e.server.Start()
	if !e.server.ReadyForConnections(startPatience) {
		e.Close()
		return nil, fmt.Errorf("the queue's server is not ready after %v: is the address %s taken, or the folder %s another one's?", startPatience, o.Listen, o.Dir)
	}
	if o.Config == "" {
		u := url.URL{Scheme: "nats", User: url.User(s.Authorization), Host: e.server.Addr().String()}
		if err := writeSecret(AddressFile(o.Dir), u.String()); err != nil {
			e.Close()
			return nil, err
		}
	}
	return e, nil
}

// settings are the server's.
func (o *EmbeddedOptions) settings() (*server.Options, error) {
	s := &server.Options{}
	if o.Config != "" {
		var err error
		if s, err = server.ProcessConfigFile(o.Config); err != nil {
			return nil, err
		}
	} else {
		host, port, err := net.SplitHostPort(o.Listen)
		if err != nil {
			return nil, err
		}
		if s.Port, err = strconv.Atoi(port); err != nil {
			return nil, fmt.Errorf("%s: expected a number as the port", o.Listen)
		}
		if s.Port == 0 {
			s.Port = server.RANDOM_PORT
		}
		if s.Host, err = loopback(host); err != nil {
			return nil, err
		}
		s.Authorization = o.token()
	}
	s.JetStream, s.NoSigs, s.NoLog = true, true, false
	if s.StoreDir == "" {
		s.StoreDir = filepath.Join(o.Dir, "nats")
	}
	if s.JetStreamMaxStore == 0 && o.MaxStore > 0 {
		s.JetStreamMaxStore = o.MaxStore
	}
	if s.SyncInterval == 0 {
		s.SyncInterval = 10 * time.Second
	}
	return s, nil
}

// ownAccount is the account of this process where the settings have several.
const ownAccount = "UNWINDD"

// admit has the server let this process in. Where its settings name users, it is one more,
// of their only account, or of that called UNWINDD. Users of an operator have credentials.
func (o *EmbeddedOptions) admit(s *server.Options) (self nats.Option, err error) {
	switch {
	case s.Authorization != "":
		return nats.Token(s.Authorization), nil
	case len(s.TrustedOperators) > 0 || s.Username == "" && len(s.Users)+len(s.Nkeys)+len(s.Accounts) == 0:
		return nil, nil
	}
	if s.Username != "" { // the server knows one user, or a list of them
		s.Users = append(s.Users, &server.User{Username: s.Username, Password: s.Password})
		s.Username, s.Password = "", ""
	}
	u := &server.User{Username: "unwindd-" + rand.Text(), Password: rand.Text()}
	if u.Account, err = accountOf(s); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Config, err)
	}
	s.Users = append(s.Users, u)
	return nats.UserInfo(u.Username, u.Password), nil
}

// accountOf is the account in which this process has its queue; nil: there is but the server's.
func accountOf(s *server.Options) (*server.Account, error) {
	var list []*server.Account
	for _, a := range s.Accounts {
		if a.Name == ownAccount {
			return a, nil
		}
		if a.Name != s.SystemAccount && a.Name != server.DEFAULT_SYSTEM_ACCOUNT {
			list = append(list, a)
		}
	}
	switch len(list) {
	case 0:
		return nil, nil
	case 1:
		return list[0], nil
	}
	return nil, fmt.Errorf("%d accounts: expected one, or one called %s, which has this worker's queue", len(list), ownAccount)
}

// token is the one that the last server with this folder had, with which others come back
// when this one stands in its place; else a new one.
func (o *EmbeddedOptions) token() string {
	if u, err := url.Parse(ReadAddress(o.Dir)); err == nil && u.User.Username() != "" {
		return u.User.Username()
	}
	return rand.Text()
}

// errNotLocal says that a server without accounts is for this machine alone.
var errNotLocal = errors.New("others reach this address: expected settings of nats-server with TLS and users")

// loopback is the address of a host that is this machine, and that nobody else reaches.
func loopback(host string) (string, error) {
	if host == "localhost" || host == "" {
		return "127.0.0.1", nil
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", fmt.Errorf("%s: %w", host, errNotLocal)
	}
	return host, nil
}

// writeSecret writes a file that its user alone reads.
func writeSecret(path, text string) error {
	part := path + ".part"
	if err := os.WriteFile(part, []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// ReadAddress is the URL of the server that keeps its things in a folder; "" where there is
// none.
func ReadAddress(dir string) string {
	b, err := os.ReadFile(AddressFile(dir))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// inProcess is how this process reaches the server.
func (e *Embedded) inProcess() []nats.Option {
	list := []nats.Option{nats.InProcessServer(e.server)}
	if e.self != nil {
		list = append(list, e.self)
	}
	return list
}

// room is how many bytes the server may keep.
func (e *Embedded) room() int64 { return e.server.JetStreamConfig().MaxStore }

// Address is where other processes reach the server, without its token.
func (e *Embedded) Address() string { return e.server.Addr().String() }

// Close ends the server. What it has kept stays.
func (e *Embedded) Close() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// natsLog passes on what a server says of what is wrong.
type natsLog struct{ log func(string) }

func (l natsLog) say(format string, v ...any) {
	if l.log != nil {
		l.log("queue: " + fmt.Sprintf(format, v...))
	}
}

// Warnf, Errorf and Fatalf implement server.Logger, as the others do, which say nothing.
func (l natsLog) Warnf(format string, v ...any)  { l.say(format, v...) }
func (l natsLog) Errorf(format string, v ...any) { l.say(format, v...) }
func (l natsLog) Fatalf(format string, v ...any) { l.say(format, v...) }
func (natsLog) Noticef(string, ...any)           {}
func (natsLog) Debugf(string, ...any)            {}
func (natsLog) Tracef(string, ...any)            {}

// withoutSecrets is a list of URLs without users and tokens.
func withoutSecrets(urls string) string {
	list := strings.Split(urls, ",")
	for i, text := range list {
		if u, err := url.Parse(strings.TrimSpace(text)); err == nil {
			u.User = nil
			list[i] = u.String()
		}
	}
	return strings.Join(list, ",")
}
