// SPDX-License-Identifier: Apache-2.0

package symbolstore

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/host"
)

// Store has symbol files and code.
type Store interface {
	// Fetch is as in object.Remote.
	Fetch(f object.RemoteFile) (path string, tried []object.Attempt)
	// Close ends connections.
	Close()
}

// Client requests files from stores, one after the other. It is an object.Remote.
type Client []Store

// New makes stores from texts: URLs of servers (http, https), directories, also as file: URLs,
// and single files. It does not connect yet.
func New(texts []string, o download.Options) (Client, error) {
	var c Client
	for _, text := range texts {
		s, err := newStore(text, o)
		if err != nil {
			return nil, err
		}
		c = append(c, s)
	}
	return c, nil
}

// Fetch returns a file from the first store that has it.
func (c Client) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	for _, s := range c {
		found, more := s.Fetch(f)
		if tried = append(tried, more...); found != "" {
			return found, tried
		}
	}
	return "", tried
}

// Close closes idle connections.
func (c Client) Close() {
	for _, s := range c {
		s.Close()
	}
}

func newStore(text string, o download.Options) (Store, error) {
	if scheme, _, ok := strings.Cut(text, "://"); ok {
		u, err := url.Parse(text)
		switch {
		case err != nil:
			return nil, errors.New("the URL of a store cannot be read: " + download.WithoutURL(err).Error())
		case scheme == "file" && (u.Host == "" || u.Host == "localhost"):
			text = host.PathOfURL(u.Path)
		case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
			u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = "", "", "", false
			return newServer(u, o), nil
		default:
			return nil, fmt.Errorf("%s: expected http://HOST, https://HOST or a directory", u.Redacted())
		}
	}
	info, err := os.Stat(text)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return newDirectory(text, o), nil
	case info.Mode().IsRegular():
		return newSingle(text), nil
	}
	return nil, fmt.Errorf("%s: %w, expected a directory, a URL, a symbol file or a PDB file", text, object.ErrNotRegular)
}

// single is a user-provided symbol file or PDB file. It serves any module with its identifier,
// regardless of the module's name.
type single struct {
	path  string
	isPDB bool
}

func newSingle(path string) single {
	o, err := object.Open(path)
	if err != nil {
		return single{path, false}
	}
	defer o.Close()
	return single{path, o.IsPDB()}
}

func (s single) Close() {}

func (s single) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	kind := object.RemoteSymbols
	if s.isPDB {
		kind = object.RemotePDB
	}
	if f.Kind != kind {
		return "", nil
	}
	err := check(s.path, f)
	if err == nil {
		return s.path, nil
	}
	a := attempt(s.path, err)
	if a.Kind == object.Mismatched && !strings.EqualFold(s.name(), f.Name) {
		a.Kind = object.Absent // it is of another module, which is no problem of this one
	}
	return "", []object.Attempt{a}
}

// name returns the name of the file whose symbols it has.
func (s single) name() string {
	if s.isPDB {
		return filepath.Base(s.path)
	}
	m, _ := breakpad.Identify(s.path)
	return m.Name
}

func attempt(path string, err error) object.Attempt {
	a := object.Attempt{Path: path, Reason: download.WithoutPath(err).Error(), Kind: object.Unreadable}
	var wrong download.WrongError
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		a.Kind = object.Absent
	case errors.As(err, &wrong):
		a.Kind = object.Mismatched
	}
	return a
}

// refused returns the attempt of a store that is not searched.
func refused(where string, err error) []object.Attempt {
	if errors.Is(err, errOther) {
		return nil
	}
	return []object.Attempt{{Path: where, Reason: "not asked: " + err.Error(), Kind: object.Unreadable}}
}
