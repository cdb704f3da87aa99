// SPDX-License-Identifier: Apache-2.0

// Package queueserver starts a server of NATS JetStream in this process, for a worker that has
// its fleet's queue itself.
package queueserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/unwindd/unwindd/engine/service/fleet"
)

// Server is a server of NATS in this process.
type Server struct {
	nats *server.Server
	self nats.Option // by which this process asks; nil: as the settings say
}

var _ fleet.Server = (*Server)(nil)

// options are the options of a server that is started.
type options struct{ fleet.ServerOptions }

// Start starts a server. Streams that one before it kept in the folder are there again.
func Start(given fleet.ServerOptions) (fleet.Server, error) {
	o := options{given}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	s, err := o.settings()
	if err != nil {
		return nil, err
	}
	e := &Server{}
	if e.self, err = o.admit(s); err != nil {
		return nil, err
	}
	if e.nats, err = server.NewServer(s); err != nil {
		return nil, fmt.Errorf("the queue's server: %w", err)
	}
	e.nats.SetLoggerV2(natsLog{o.Log}, false, false, false)
	e.nats.Start()
	if !e.nats.ReadyForConnections(fleet.StartPatience) {
		e.Close()
		return nil, fmt.Errorf("the queue's server is not ready after %v: is the address %s taken, or the folder %s another one's?", fleet.StartPatience, o.Listen, o.Dir)
	}
	if o.Config == "" {
		u := url.URL{Scheme: "nats", User: url.User(s.Authorization), Host: e.nats.Addr().String()}
		if err := writeSecret(fleet.AddressFile(o.Dir), u.String()); err != nil {
			e.Close()
			return nil, err
		}
	}
	return e, nil
}

// settings are the server's.
func (o *options) settings() (*server.Options, error) {
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
func (o *options) admit(s *server.Options) (self nats.Option, err error) {
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
func (o *options) token() string {
	if u, err := url.Parse(fleet.ReadAddress(o.Dir)); err == nil && u.User.Username() != "" {
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

// ConnectOptions are the options by which this process reaches the server.
func (e *Server) ConnectOptions() []nats.Option {
	list := []nats.Option{nats.InProcessServer(e.nats)}
	if e.self != nil {
		list = append(list, e.self)
	}
	return list
}

// MaxStore is how many bytes the server may keep.
func (e *Server) MaxStore() int64 { return e.nats.JetStreamConfig().MaxStore }

// Address is where other processes reach the server, without its token.
func (e *Server) Address() string { return e.nats.Addr().String() }

// Close ends the server. What it has kept stays.
func (e *Server) Close() {
	e.nats.Shutdown()
	e.nats.WaitForShutdown()
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
