// SPDX-License-Identifier: Apache-2.0

// Package queueserver starts a server of NATS JetStream in this process, for a worker that
// hosts its fleet's queue.
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
	self nats.Option // this process's credentials; nil: from the settings
}

var _ fleet.Server = (*Server)(nil)

// options are the options of a server that is started.
type options struct{ fleet.ServerOptions }

// Start starts a server with the streams that are stored in the folder.
func Start(settings fleet.ServerOptions) (fleet.Server, error) {
	o := options{settings}
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

// settings returns nats-server's settings.
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

// admit adds a user for this process to the server's settings, where they name users: in
// their only account, or in the one called UNWINDD. Users of an operator have credentials.
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

// accountOf returns the account of the queue; nil: there is only the server's own.
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

// token returns the token of the last server with this folder, so that its clients can come
// back; else a new one.
func (o *options) token() string {
	if u, err := url.Parse(fleet.ReadAddress(o.Dir)); err == nil && u.User.Username() != "" {
		return u.User.Username()
	}
	return rand.Text()
}

// errNotLocal is the error of a server without accounts that other machines would reach.
var errNotLocal = errors.New("others reach this address: expected settings of nats-server with TLS and users")

// loopback returns the address of a host that only this machine reaches.
func loopback(host string) (string, error) {
	if host == "localhost" || host == "" {
		return "127.0.0.1", nil
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", fmt.Errorf("%s: %w", host, errNotLocal)
	}
	return host, nil
}

// writeSecret writes a file that only its user can read.
func writeSecret(path, text string) error {
	part := path + ".part"
	if err := os.WriteFile(part, []byte(text+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// ConnectOptions implements fleet.Server.
func (e *Server) ConnectOptions() []nats.Option {
	list := []nats.Option{nats.InProcessServer(e.nats)}
	if e.self != nil {
		list = append(list, e.self)
	}
	return list
}

// MaxStore implements fleet.Server.
func (e *Server) MaxStore() int64 { return e.nats.JetStreamConfig().MaxStore }

// Address implements fleet.Server.
func (e *Server) Address() string { return e.nats.Addr().String() }

// Close ends the server. Its storage stays.
func (e *Server) Close() {
	e.nats.Shutdown()
	e.nats.WaitForShutdown()
}

// natsLog passes on warnings and errors of a server.
type natsLog struct{ log func(string) }

func (l natsLog) say(format string, v ...any) {
	if l.log != nil {
		l.log("queue: " + fmt.Sprintf(format, v...))
	}
}

// Warnf, Errorf and Fatalf implement server.Logger, as do the other methods, which drop
// their messages.
func (l natsLog) Warnf(format string, v ...any)  { l.say(format, v...) }
func (l natsLog) Errorf(format string, v ...any) { l.say(format, v...) }
func (l natsLog) Fatalf(format string, v ...any) { l.say(format, v...) }
func (natsLog) Noticef(string, ...any)           {}
func (natsLog) Debugf(string, ...any)            {}
func (natsLog) Tracef(string, ...any)            {}
