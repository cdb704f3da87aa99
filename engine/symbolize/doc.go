// SPDX-License-Identifier: Apache-2.0

// Package symbolize finds the names of the code and data at addresses of a file, as
// llvm-symbolizer and addr2line do. A Session answers questions from the
// command line, or from its input, and writes the answers in the style of either tool:
//
//	s := symbolize.New(symbolize.Options{})
//	defer s.Close()
//	session := symbolize.Session{Symbolizer: s, Object: "server", Inlines: true}
//	return session.Run(os.Stdout, []string{"0x401257", "0x401300"}, nil)
//
// An Addr2line does so by addr2line's protocol. A File gives the answers themselves.
// Each tool chooses another of the names of code: FramesLLVM and FramesGNU are the two
// choices.
//
// File.WriteSymbolFile writes the names, lines and rows of a file as a symbol file of Breakpad.
package symbolize
