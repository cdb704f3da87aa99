; The example of the document in the form that it replaces, that of LLVM 3.4.
; Function Attrs: nounwind ssp uwtable
define void @foo() #0 {
entry:
  %X = alloca i32, align 4
  %Y = alloca i32, align 4
  %Z = alloca i32, align 4
  call void @llvm.dbg.declare(metadata !{i32* %X}, metadata !10), !dbg !12
  ; [debug line = 2:7] [debug variable = X]
  store i32 21, i32* %X, align 4, !dbg !12
  call void @llvm.dbg.declare(metadata !{i32* %Y}, metadata !13), !dbg !14
  ; [debug line = 3:7] [debug variable = Y]
  store i32 22, i32* %Y, align 4, !dbg !14
  call void @llvm.dbg.declare(metadata !{i32* %Z}, metadata !15), !dbg !17
  ; [debug line = 5:9] [debug variable = Z]
  store i32 23, i32* %Z, align 4, !dbg !17
  %0 = load i32* %X, align 4, !dbg !18
    [debug line = 6:5]
  store i32 %0, i32* %Z, align 4, !dbg !18
  %1 = load i32* %Y, align 4, !dbg !19
    [debug line = 8:3]
  store i32 %1, i32* %X, align 4, !dbg !19
  ret void, !dbg !20
}

; Function Attrs: nounwind readnone
declare void @llvm.dbg.declare(metadata, metadata) #1

attributes #0 = { nounwind ssp uwtable "less-precise-fpmad"="false"
  "no-frame-pointer-elim"="true" "no-frame-pointer-elim-non-leaf"
  "use-soft-float"="false" }
attributes #1 = { nounwind readnone }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!8}
!llvm.ident = !{!9}

!0 = metadata !{i32 786449, metadata !1, i32 12,
  metadata !"clang version 3.4 (trunk 193128) (llvm/trunk 193139)",
  i1 false, metadata !"", i32 0, metadata !2, metadata !2, metadata !3,
  metadata !2, metadata !2, metadata !""} ; [ DW_TAG_compile_unit ] \
  [/src/foo.c] \
  [DW_LANG_C99]
!1 = metadata !{metadata !"t.c", metadata !"/src"}
!2 = metadata !{i32 0}
!3 = metadata !{metadata !4}
!4 = metadata !{i32 786478, metadata !1, metadata !5, metadata !"foo",
  metadata !"foo", metadata !"", i32 1, metadata !6,
  i1 false, i1 true, i32 0, i32 0, null, i32 0, i1 false,
  void ()* @foo, null, null, metadata !2, i32 1}
  ; [ DW_TAG_subprogram ] [line 1] [def] [foo]
!5 = metadata !{i32 786473, metadata !1} ; [ DW_TAG_file_type ] \
  [/src/t.c]
!6 = metadata !{i32 786453, i32 0, null, metadata !"", i32 0, i64 0, i64 0,
  i64 0, i32 0, null, metadata !7, i32 0, null, null, null}
  ; [ DW_TAG_subroutine_type ] \
  [line 0, size 0, align 0, offset 0] [from ]
!7 = metadata !{null}
!8 = metadata !{i32 2, metadata !"Dwarf Version", i32 2}
!9 = metadata !{metadata !"clang version 3.4 (trunk 193128) (llvm/trunk 193139)"}
!10 = metadata !{i32 786688, metadata !4, metadata !"X", metadata !5, i32 2,
  metadata !11, i32 0, i32 0} ; [ DW_TAG_auto_variable ] [X] \
  [line 2]
!11 = metadata !{i32 786468, null, null, metadata !"int", i32 0, i64 32,
  i64 32, i64 0, i32 0, i32 5} ; [ DW_TAG_base_type ] [int] \
  [line 0, size 32, align 32, offset 0, enc DW_ATE_signed]
!12 = metadata !{i32 2, i32 0, metadata !4, null}
!13 = metadata !{i32 786688, metadata !4, metadata !"Y", metadata !5, i32 3,
  metadata !11, i32 0, i32 0} ; [ DW_TAG_auto_variable ] [Y] \
  [line 3]
!14 = metadata !{i32 3, i32 0, metadata !4, null}
!15 = metadata !{i32 786688, metadata !16, metadata !"Z", metadata !5, i32 5,
  metadata !11, i32 0, i32 0} ; [ DW_TAG_auto_variable ] [Z] \
  [line 5]
!16 = metadata !{i32 786443, metadata !1, metadata !4, i32 4, i32 0, i32 0} \
  ; [ DW_TAG_lexical_block ] [/src/t.c]
!17 = metadata !{i32 5, i32 0, metadata !16, null}
!18 = metadata !{i32 6, i32 0, metadata !16, null}
!19 = metadata !{i32 8, i32 0, metadata !4, null} ; [ DW_TAG_imported_declaration ]
!20 = metadata !{i32 9, i32 0, metadata !4, null}
