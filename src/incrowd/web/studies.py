"""The papers' experiments on this crowd, each with the few options that matter; and the pages of judges of topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import JSONResponse, Response

from incrowd.crowd import Crowd
from incrowd.crowd.ingest import Progress
from incrowd.errors import IncrowdError, InputError
from incrowd.measures.exposure import training
from incrowd.measures.exposure.learnt_spaces import LdaSpace
from incrowd.measures.exposure.scoring import post_batches
from incrowd.measures.exposure.space import BagOfWords, default_space
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.exposure.topics import starter_topics
from incrowd.measures.exposure.training import TrainOptions
from incrowd.measures.microdata.spec import ProfileFilter
from incrowd.measures.microdata.table import item_table
from incrowd.profiles.attributes import attribute_table
from incrowd.report.page import judges_page, study_page
from incrowd.study.belief import belief_study
from incrowd.study.belief_experiments import BeliefStudyOptions
from incrowd.study.figures import Study
from incrowd.study.matched import PairStudyOptions
from incrowd.study.microdata_questions import StudyOptions
from incrowd.study.release import release_study
from incrowd.study.release_data import ReleaseStudyOptions
from incrowd.web.models import read_in_child
from incrowd.web.site import ResultGone, Site, attached, document, receive_files
from incrowd.web.uploads import NO_OPTIONS, Upload

Numbers = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class StudyForm:
    """One study, as a form shows it."""

    title: str
    question: str
    fields: Mapping[str, tuple[str, float]]
    """Name -> words, default."""
    run: Callable[[Crowd, Numbers, Progress], Study]

    def numbers(self, form: Mapping[str, object]) -> dict[str, float]:
        """Read the options; those not given keep their default."""
        try:
            return {name: float(str(form.get(name) or default)) for name, (_, default) in self.fields.items()}
        except ValueError:
            raise InputError("a study's options are numbers; go back and check them") from None


def _anonymity(crowd: Crowd, numbers: Numbers, progress: Progress) -> Study:
    from incrowd.study.anonymity import anonymity_study

    return anonymity_study(crowd, _pairs(numbers), progress)


def _linkability(crowd: Crowd, numbers: Numbers, progress: Progress) -> Study:
    from incrowd.study.linkability import linkability_study

    return linkability_study(crowd, _pairs(numbers), progress=progress)


def _pairs(numbers: Numbers) -> PairStudyOptions:
    chosen = _whole(numbers)
    return PairStudyOptions(
        min_posts=chosen["min_posts"], min_profiles=chosen["min_profiles"], min_pairs=chosen["min_pairs"]
    )


def _microdata(crowd: Crowd, numbers: Numbers, progress: Progress) -> Study:
    from incrowd.study.microdata import microdata_study

    chosen = _whole(numbers)
    table = item_table(crowd, ProfileFilter(fewest=chosen.pop("min_items")))
    return microdata_study(table, StudyOptions(**chosen), progress)


def _belief(crowd: Crowd, numbers: Numbers, progress: Progress) -> Study:
    options = BeliefStudyOptions(
        people=int(numbers["people"]), sigma=numbers["sigma"], seed=int(numbers["seed"])
    )
    return belief_study(attribute_table(crowd), options, crowd, progress=progress)


def _release(crowd: Crowd, numbers: Numbers, progress: Progress) -> Study:
    options = ReleaseStudyOptions(
        thresholds=(int(numbers["threshold"]),),
        classes=int(numbers["classes"]),
        seconds=numbers["seconds"],
        seed=int(numbers["seed"]),
    )
    return release_study(crowd, options, progress)


def _whole(numbers: Numbers) -> dict[str, int]:
    return {name: int(value) for name, value in numbers.items()}


PAIRS = {
    "min_posts": ("leave out profiles with fewer posts", 20.0),
    "min_profiles": ("leave out communities with fewer profiles", 10.0),
    "min_pairs": ("leave out pairs of communities that share fewer people", 5.0),
}
STUDIES: dict[str, StudyForm] = {
    "anonymity": StudyForm(
        title="Anonymity",
        question="How well do people hide in their communities?",
        fields=PAIRS,
        run=_anonymity,
    ),
    "linkability": StudyForm(
        title="Linkability", question="Who can be linked despite a crowd?", fields=PAIRS, run=_linkability
    ),
    "microdata": StudyForm(
        title="Microdata",
        question="How well do people hide in a table of items, and does their own score tell them?",
        fields={
            "sample": ("people in the simulated parts", 200.0),
            "min_items": ("leave out profiles with fewer items", 8.0),
            "seed": ("seed", 0.0),
        },
        run=_microdata,
    ),
    "belief": StudyForm(
        title="Belief",
        question="What do published attributes give away, how honestly, and what repairs it?",
        fields={
            "people": ("held-out people looked at, at most", 400.0),
            "sigma": ("what the tried policy allows, 0 to 1", 0.5),
            "seed": ("seed", 0.0),
        },
        run=_belief,
    ),
    "release": StudyForm(
        title="Release",
        question="How much of its answers may leave the database, and by which rule?",
        fields={
            "threshold": ("least q", 10.0),
            "classes": ("classes looked at, at most", 40.0),
            "seconds": ("time budget of one question, in seconds", 1.0),
            "seed": ("seed", 0.0),
        },
        run=_release,
    ),
}


def _exposure(site: Site, labels: Upload, progress: Progress) -> Study:
    from incrowd.measures.exposure.comparison import read_labels
    from incrowd.study.exposure import exposure_study

    crowd = site.crowd()
    try:
        judged = read_labels(labels.files[0], crowd)
    except IncrowdError as error:
        raise labels.at_the_form(error, NO_OPTIONS) from None
    finally:
        labels.discard()
    return exposure_study(
        crowd, [default_space(), BagOfWords(starter_topics())], judged, ExposureOptions(), progress
    )


def routes(site: Site) -> APIRouter:
    """Return the pages."""
    router = APIRouter()

    @router.post("/uploads/studies/exposure")
    async def exposure(request: Request) -> Response:
        labels = await receive_files(site, request)
        return site.begin(
            "Study: Exposure", "/studies/{id}", lambda progress: _exposure(site, labels, progress)
        )

    @router.get("/studies")
    def studies() -> Response:
        done = [job for job in site.jobs.all() if isinstance(job.result, Study)]
        return site.page("studies.html", section="Studies", studies=STUDIES, done=done)

    @router.post("/studies/run/{name}", dependencies=[Depends(site.check_form)])
    async def run(name: str, request: Request) -> Response:
        if name not in STUDIES:
            raise ResultGone
        study = STUDIES[name]
        numbers = study.numbers(dict(await request.form()))
        return site.begin(
            f"Study: {study.title}",
            "/studies/{id}",
            lambda progress: study.run(site.crowd(), numbers, progress),
        )

    @router.get("/studies/{job_id}")
    def show(job_id: str) -> Response:
        return document(study_page(site.finished(job_id, Study).result))

    @router.get("/studies/{job_id}/study.json")
    def as_json(job_id: str) -> Response:
        result: Study = site.finished(job_id, Study).result
        return JSONResponse(result.to_dict(), headers=attached(f"{result.name}.json"))

    return router


def judge_routes(site: Site) -> APIRouter:
    """Return the pages."""
    router = APIRouter()

    @router.get("/judges")
    def judges() -> Response:
        done = [job for job in site.jobs.all() if isinstance(job.result, LdaSpace)]
        return site.page("judges.html", section="Judges", done=done)

    @router.post("/judges/learn", dependencies=[Depends(site.check_form)])
    def learn(dims: Annotated[int, Form()] = 50, rounds: Annotated[int, Form()] = 100) -> Response:
        options = TrainOptions(dims=dims, rounds=rounds)
        return site.begin("Learning topics", "/judges/{id}", lambda progress: _learn(site, options, progress))

    @router.post("/uploads/judges/space")
    async def bring(request: Request) -> Response:
        upload = await receive_files(site, request)
        try:
            space = await asyncio.to_thread(_space, upload)  # waits for the child that reads it
        finally:
            upload.discard()
        return site.begin("Reading the space", "/judges/{id}", lambda progress: space)

    @router.get("/judges/{job_id}")
    def space_page(job_id: str) -> Response:
        space: LdaSpace = site.finished(job_id, LdaSpace).result
        return site.page(
            "judged.html", section="Judges", job_id=job_id, topics=training.salient_words(space), verdict=None
        )

    @router.get("/judges/{job_id}/form")
    def form(job_id: str) -> Response:
        space: LdaSpace = site.finished(job_id, LdaSpace).result
        return document(judges_page(training.salient_words(space), training.DOMAINS))

    @router.get("/judges/{job_id}/sheet.csv")
    def sheet(job_id: str) -> Response:
        space: LdaSpace = site.finished(job_id, LdaSpace).result
        text = training.sheet(space).write_csv()
        return Response(text, media_type="text/csv", headers=attached("topics-to-judge.csv"))

    @router.post("/uploads/judges/{job_id}/votes")
    async def votes(job_id: str, request: Request) -> Response:
        space: LdaSpace = site.finished(job_id, LdaSpace).result
        upload = await receive_files(site, request)
        topics = training.salient_words(space)
        try:
            verdict = training.decide(training.read_votes(upload.files, len(topics)))
        except InputError as error:
            raise upload.at_the_form(error, NO_OPTIONS) from None
        finally:
            upload.discard()
        toml = training.topics_toml(space, verdict)
        return site.page(
            "judged.html",
            section="Judges",
            job_id=job_id,
            topics=topics,
            verdict=verdict.to_dict(),
            toml=toml,
        )

    return router


def _space(upload: Upload) -> LdaSpace:
    if not upload.files:
        raise InputError("upload: expected the file of a model, got none")
    try:
        space = read_in_child(upload.files[0])
    except InputError as error:
        raise upload.at_the_form(error, NO_OPTIONS) from None
    if not isinstance(space, LdaSpace):
        raise InputError(f"{upload.files[0].name}: only an LDA space has latent topics to judge")
    return space


def _learn(site: Site, options: Any, progress: Progress) -> LdaSpace:
    progress(0, None, "reading posts")
    batches = post_batches(site.crowd(), ExposureOptions())
    posts = training.documents((batch["text"] for batch in batches), options)
    return training.train_lda(posts, starter_topics(), options, progress)
