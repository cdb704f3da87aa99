// SPDX-License-Identifier: Apache-2.0

package cxxname

// A kind says what a node of the tree of a name is.
type kind uint8

const (
	kindName            kind = iota // text
	kindQualified                   // a::b
	kindLocal                       // b in the function a
	kindTagged                      // a with the ABI tag text
	kindBindings                    // structured bindings, list
	kindModule                      // b of the module a; flag: a partition
	kindModuleEntity                // a of the module b
	kindFriend                      // a::friend b
	kindStd                         // an abbreviation of std; sub says which, flag: written out
	kindConstructor                 // of a class a
	kindDestructor                  // of a class a
	kindOperator                    // the name of an operator, op
	kindVendorOperator              // operator text
	kindConversion                  // operator a
	kindUserLiteral                 // operator"" text
	kindUnnamed                     // a type without a name, text and num: its number
	kindLambda                      // list: the parameters; decls, a, b: constraints; text and num: its number
	kindDefaultArgument             // b in the default argument num
	kindBlock                       // a name that a compiler made, text

	kindTemplate    // a with the arguments b
	kindArguments   // list; a: a constraint
	kindParameter   // the template parameter num (GNU)
	kindForward     // the template parameter num, which is a as soon as it is known (LLVM)
	kindPack        // the parameter pack of the arguments list (LLVM)
	kindExpansion   // a...
	kindTypedArg    // the argument b for the declaration a
	kindTypeDecl    // typename a
	kindConceptDecl // b a
	kindValueDecl   // b a
	kindTemplateDecl
	kindPackDecl // a...

	kindBuiltin // text
	kindVendor  // text, with the argument a
	kindBitInt  // a bits; text: unsigned
	kindFixed   // text
	kindPointer
	kindReference
	kindRvalue
	kindConst
	kindVolatile
	kindRestrict
	kindComplex
	kindImaginary
	kindVendorQualifier // a, with the qualifier text and the arguments b
	kindProtocol        // a with the protocol text of Objective-C
	kindPostfix         // a text
	kindThis            // a, a function or its name, with the qualifier text; b: the operand
	kindFunction        // list: the parameters; a: the result; quals; b: the exceptions
	kindArray           // of b; a: the dimension
	kindMember          // a pointer to a member b of a
	kindVector          // of b; a: the dimension
	kindDecltype
	kindElaborated // text a
	kindExceptions // noexcept(a) or throw(list)
	kindExplicitThis

	kindEncoding // the function a with the type b; c: a constraint; list: enable_if
	kindSpecial  // text a
	kindSpecial2 // text a-in-b
	kindTemporary
	kindClone // a with the suffix text

	kindUnary     // op a; flag: behind it
	kindBinary    // a op b
	kindTernary   // op: a, b, c
	kindCall      // a(list); flag: in brackets
	kindCast      // (a)(list); flag: the list was written as one
	kindNamedCast // op<a>(b)
	kindNew       // op, placement: list, type a, initializers b; flag: global
	kindDelete    // op a; flag: global
	kindOfType    // op (a), a type
	kindSizeofPack
	kindSizeofArgs
	kindNoexcept
	kindThrow
	kindGlobal   // ::a
	kindLiteral  // text of the type a; flag: negative
	kindFloat    // text of the type a
	kindBool     // text
	kindNullptr  //
	kindString   // of the type a
	kindLambdaOf // []a{...}
	kindArgument // the parameter num of a function; text: its number
	kindFold     // op, a: the pack, b: the initializer; flag: to the left
	kindList     // a{list}
	kindDesignator
	kindDesignatorRange
	kindMemberCast
	kindSubobject
	kindVendorCall // text(list)
	kindRequires   // list: the parameters; decls: the requirements
	kindRequirement
	kindTypeRequirement
	kindNested // requires a
)

// qualifiers are those of a function: of what this refers to.
type qualifiers uint8

const (
	isConst qualifiers = 1 << iota
	isVolatile
	isRestrict
	isLvalue
	isRvalue
)

// A shape says where a type is written: one with a part after the name that is
// declared, and whether it is an array or a function, which take brackets.
type shape uint8

const (
	hasRight shape = 1 << iota
	isArray
	isFunction
	isUnknown // only known as it is printed
)

// A node is a part of a name. What its fields mean says its kind.
type node struct {
	kind     kind
	flag     bool
	sub      byte
	prec     precedence
	quals    qualifiers
	shape    shape
	printing uint8 // how often it is on the way to what is being printed
	num      int
	op       *operator
	text     string
	a, b, c  *node
	list     []*node
	decls    []*node
	scope    *parameters // of a forward: where it was looked up
}

// parameters are the arguments that template parameters of one level stand for.
type parameters struct{ list []*node }
