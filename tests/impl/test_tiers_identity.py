"""What is stored is used only with the geometry, layout and weights it was made with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.impl.tier_folder import opened
from tests.impl.tier_workload import IDENTITY, value, version_of

from fivestate.impl.tiers import Store, StoreError, StoreIdentity, fingerprint
from fivestate.impl.tiers.errors import GeometryError, ManifestError, VersionError
from fivestate.spec.reuse.files import preset


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path / "store") as store:
        yield store


def test_objects_of_other_weights_are_dropped_at_the_opening(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.put("a", value(1))
        store.put("b", value(1))
    with opened(tmp_path, replace(IDENTITY, weights=2)) as store:
        assert (store.keys(), store.stats().old_weights) == ([], 2)
        assert list((store.path / "objects").iterdir()) == []
    with opened(tmp_path) as store:
        assert store.keys() == []


def test_new_weights_drop_what_the_old_ones_made(store: Store) -> None:
    store.put("a", value(1))
    store.change_weights(2)
    store.put("b", value(2))
    assert (store.keys(), store.stats().old_weights) == (["b"], 1)


def test_objects_of_another_layout_are_old_and_stay(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.put("a", value(1))
        store.change_layout("2")
        store.put("b", value(1))
        assert [store.is_old(key) for key in "ab"] == [True, False]
    with opened(tmp_path, replace(IDENTITY, layout="2")) as store:
        assert [store.is_old(key) for key in "ab"] == [True, False]
        assert version_of(store.get("a")) == 1


def test_weights_that_change_while_an_object_is_put_refuse_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store._folder, "write", lambda *_: store.change_weights(2))
    with pytest.raises(StoreError, match="weights changed"):
        store.put("a", value(1))
    assert store.keys() == []


def test_a_folder_of_another_geometry_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.put("a", value(1))
    with pytest.raises(GeometryError, match="'toy', not 'other'"):
        opened(tmp_path, replace(IDENTITY, geometry="other"))
    with opened(tmp_path) as store:
        assert version_of(store.get("a")) == 1


def test_a_folder_that_a_newer_release_wrote_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.put("a", value(1))
        store._folder.manifest._connection.execute("PRAGMA user_version = 2")
    with pytest.raises(VersionError, match="has format 2, and this release reads 1"):
        opened(tmp_path)
    assert len(list((tmp_path / "objects").iterdir())) == 1


def test_a_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store._folder.manifest._connection.execute("PRAGMA application_id = 1")
    with pytest.raises(ManifestError, match="not one of this program's"):
        opened(tmp_path)


def test_a_fingerprint_depends_on_what_decides_the_bytes() -> None:
    geometry = preset("toy")
    changed = replace(geometry.groups[0], bytes_per_entry=999)
    renamed = replace(geometry, name="other", source="elsewhere")
    assert fingerprint(geometry) == fingerprint(renamed)
    assert fingerprint(geometry) != fingerprint(
        replace(geometry, groups=(changed, *geometry.groups[1:]))
    )
    assert StoreIdentity.of(geometry, weights=3).weights == 3
