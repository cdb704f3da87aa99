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
// does not import queueserver: nats-server is a fifth of an executable.
type Server interface {
	// ConnectOptions returns the options by which this process reaches the server.
	ConnectOptions() []nats.Option
	// MaxStore returns the bound of the server's storage, in bytes.
	MaxStore() int64
	// Address returns HOST:PORT at which other processes reach the server, without its
	// token.
	Address() string
	// Close ends the server. Its streams stay in its folder.
	Close()
}

// ServerOptions are the options of a Server.
type ServerOptions struct {
	// Dir is the folder of the server's storage.
	Dir string
	// Listen is HOST:PORT of this machine, at which other processes reach the server with
	// the token of the file that AddressFile names. It is not used with Config.
	Listen string
	// Config is a file of settings of nats-server: accounts, TLS, a cluster, other limits.
	// "": none.
	Config string
	// MaxStore bounds the server's storage, in bytes; 0: by the free disk.
	MaxStore int64
	// Log gets the server's warnings and errors; nil: they are dropped.
	Log func(text string)
}

// StartPatience bounds the time in which a server reads its storage.
const StartPatience = 60 * time.Second

// AddressFile returns the file in a server's folder that has its URL, with a token: whoever
// can read it reaches the server.
func AddressFile(dir string) string { return filepath.Join(dir, "address") }

// ReadAddress returns the URL of the server whose storage is in a folder; "" where there is
// none.
func ReadAddress(dir string) string {
	b, err := os.ReadFile(AddressFile(dir))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// withoutSecrets returns a list of URLs without users and tokens.
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
