// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
)

// elfNote is the number of bytes of a build ID in a key of a symbol store: shorter ones are padded with
// zeros (SSQP Key Conventions, ELF-buildid).
const elfNote = 20

// keyKinds are the kinds of files that the keys of symbol stores name by a build ID, the longer prefix
// first.
var keyKinds = []struct {
	prefix string
	kind   object.RemoteKind
}{
	{"elf-buildid-sym-", object.RemoteDebuginfo},
	{"elf-buildid-", object.RemoteExecutable},
}

// giveByKey answers as a symbol store does, with a file by name and identifier.
func (s *Server) giveByKey(w http.ResponseWriter, r *http.Request, req *request) error {
	name, id, leaf := r.PathValue("file"), r.PathValue("id"), r.PathValue("leaf")
	if !object.IsPlainName(name) || !object.IsPlainName(leaf) {
		return badRequest.new(fmt.Sprintf("%.100q and %.100q: expected plain names of files", name, leaf))
	}
	for _, k := range keyKinds {
		if text, ok := strings.CutPrefix(strings.ToLower(id), k.prefix); ok {
			return s.giveELF(w, r, req, k.kind, text)
		}
	}
	f := wantedFile{RemoteFile: object.RemoteFile{Kind: object.RemoteCode, Name: name, ID: id}}
	if strings.EqualFold(leaf, object.SymbolFileName(name)) {
		f.Kind = object.RemoteSymbols
	} else if !strings.EqualFold(leaf, name) {
		return absent(f.RemoteFile)
	} else if strings.EqualFold(path.Ext(name), ".pdb") {
		f.Kind, f.BuildID = object.RemotePDB, object.ParseSymbolName(id)
	}
	return s.giveFile(w, r, req, &f)
}

// giveELF answers with a file of ELF by the build ID in a key.
func (s *Server) giveELF(w http.ResponseWriter, r *http.Request, req *request, kind object.RemoteKind, text string) (err error) {
	id, err := hex.DecodeString(text)
	if err != nil || len(id) < objects.MinID || len(id) > objects.MaxID {
		return badRequest.new(fmt.Sprintf("build ID %.160q: expected %d to %d bytes in hexadecimal", text, objects.MinID, objects.MaxID))
	}
	name := r.PathValue("file")
	if kind == object.RemoteDebuginfo {
		name = ""
	}
	for _, id := range unpadded(id) {
		f := &wantedFile{RemoteFile: object.RemoteFile{Kind: kind, BuildID: id, Name: name}}
		if err = s.giveFile(w, r, req, f); !isAbsent(err) {
			break
		}
	}
	return err
}

// unpadded returns the build IDs that a key may name, the whole one first.
func unpadded(id []byte) (list [][]byte) {
	list = append(list, id)
	for _, n := range []int{16, 8} {
		if len(id) == elfNote && strings.Trim(string(id[n:]), "\x00") == "" {
			list = append(list, id[:n])
		}
	}
	return list
}
