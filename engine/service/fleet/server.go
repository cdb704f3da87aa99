// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Server is a server of NATS in this process, which package queueserver starts. This package
// does not import that: nats-server is a fifth of an executable.
type Server interface {
	// ConnectOptions are the options by which this process reaches the server.
	ConnectOptions() []nats.Option
	// MaxStore is how many bytes the server may keep.
	MaxStore() int64
	// Address is where other processes reach the server, HOST:PORT, without its token.
	Address() string
	// Close ends the server. Its streams stay in its folder.
	Close()
}

// ServerOptions are the options of a Server.
type ServerOptions struct {
	// Dir is the folder in which it keeps everything.
	Dir string
	// Listen is HOST:PORT of this machine, at which other processes reach it with the token
	// of the file that AddressFile names. It has no meaning with Config.
	Listen string
	// Config is a file of settings of nats-server: accounts, TLS, a cluster, other limits.
	// "": none.
	Config string
	// MaxStore is how many bytes it may keep; 0: what the disk has room for.
	MaxStore int64
	// Log takes its warnings and errors; nil: they are dropped.
	Log func(text string)
}

// StartPatience is how long a server may take to read what it has kept.
const StartPatience = 60 * time.Second

// AddressFile is the file in a server's folder that has its URL, with a token: who can read
// it reaches the server.
func AddressFile(dir string) string { return filepath.Join(dir, "address") }

// ReadAddress is the URL of the server that keeps its things in a folder; "" where there is
// none.
func ReadAddress(dir string) string {
	b, err := os.ReadFile(AddressFile(dir))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

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
